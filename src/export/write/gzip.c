// SPDX-License-Identifier: MIT
// Source: RFC 1951, RFC 1952; pigz, which splits streams likewise.
#include "export/write/gzip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h> // a sum in a third of zlib's time
#include <zlib.h>

#include "base/helpers.h"

enum {
    LEVEL = 1, // a third of level 6's time for 10 % more bytes
    WINDOW_BITS = 15,
    MEMORY_LEVEL = 8,
    WINDOW_BYTES = 1 << WINDOW_BITS,
    BLOCK_BYTES = 256 * 1024,
    FLUSH_BYTES = 64, // more than deflateBound() allows for the end of a block that is not the last
};

typedef struct block {
    gp_job_t job;
    z_stream stream;
    unsigned char *in; // the dictionary, then what is compressed
    size_t dictionary_len, len;
    bool is_last, failed;
    uint32_t crc;
    unsigned char *out;
    size_t out_room, out_len;
    bool is_given;
} block_t;

struct gp_gzip {
    FILE *out;
    gp_helpers_t *helpers;
    block_t blocks[GP_GZIP_BLOCKS]; // a ring
    unsigned count, wanted;         // blocks there are, and may be
    unsigned filling;
    uint32_t crc, len; // of all that was written; the length modulo 2^32
    bool failed;
};

// Leaves the stream on a byte's boundary.
static void gzip_compress_block(gp_job_t *job)
{
    block_t *block = (block_t *)job;
    z_stream *stream = &block->stream;
    const unsigned char *data = block->in + block->dictionary_len;
    int flush = block->is_last ? Z_FINISH : Z_SYNC_FLUSH;
    bool ready = deflateReset(stream) == Z_OK &&
                 (block->dictionary_len == 0 ||
                  deflateSetDictionary(stream, block->in, (unsigned)block->dictionary_len) == Z_OK);
    stream->next_in = (unsigned char *)(uintptr_t)data; // zlib does not write there
    stream->avail_in = (unsigned)block->len;
    stream->next_out = block->out;
    stream->avail_out = (unsigned)block->out_room;
    int result = ready ? deflate(stream, flush) : Z_STREAM_ERROR;
    block->failed = result != (block->is_last ? Z_STREAM_END : Z_OK) || stream->avail_in > 0 || stream->avail_out == 0;
    block->out_len = block->out_room - stream->avail_out;
    block->crc = libdeflate_crc32(0, data, block->len);
}

static void gzip_free_block(block_t *block)
{
    deflateEnd(&block->stream);
    free(block->in);
    free(block->out);
}

static bool gzip_make_block(block_t *block)
{
    *block = (block_t){.job = {.work = gzip_compress_block}};
    if (deflateInit2(&block->stream, LEVEL, Z_DEFLATED, -WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    block->out_room = deflateBound(&block->stream, BLOCK_BYTES) + FLUSH_BYTES;
    block->in = malloc(WINDOW_BYTES + BLOCK_BYTES);
    block->out = malloc(block->out_room);
    // -Wanalyzer-malloc-leak: the block's, which is one of gzip->blocks
    if (block->in != NULL && block->out != NULL)
        return true;
    // -Wanalyzer-malloc-leak: the same
    gzip_free_block(block);
    return false;
}

gp_gzip_t *gp_gzip_open(FILE *out)
{
    static const unsigned char header[10] = {0x1f, 0x8b, 8, [8] = 4 /* fastest */, [9] = 3 /* Unix */};
    gp_gzip_t *gzip = calloc(1, sizeof(*gzip));
    if (gzip == NULL || !gzip_make_block(&gzip->blocks[0])) {
        free(gzip);
        errno = ENOMEM;
        return NULL;
    }
    gzip->out = out;
    gzip->count = gzip->wanted = 1;
    fwrite(header, 1, sizeof(header), out);
    return gzip;
}

// Write a block that was given.
static void gzip_take_block(gp_gzip_t *gzip, block_t *block)
{
    if (!block->is_given)
        return;
    gp_helpers_take(gzip->helpers, &block->job);
    block->is_given = false;
    gzip->failed = gzip->failed || block->failed;
    gzip->crc = (uint32_t)crc32_combine(gzip->crc, block->crc, (z_off_t)block->len);
    gzip->len += (uint32_t)block->len;
    fwrite(block->out, 1, block->out_len, gzip->out);
}

static void gzip_give_block(gp_gzip_t *gzip, block_t *block, bool is_last)
{
    block->is_last = is_last;
    block->is_given = true;
    gp_helpers_give(gzip->helpers, &block->job);
}

// The one behind a block: a new one while more are wanted, else the oldest.
static block_t *gzip_next_block(gp_gzip_t *gzip)
{
    unsigned next = gzip->filling + 1;
    if (next == gzip->count && next < gzip->wanted && gzip_make_block(&gzip->blocks[next]))
        gzip->count++;
    gzip->filling = next < gzip->count ? next : 0;
    return &gzip->blocks[gzip->filling];
}

// The stream is a large one from its second block on.
static void gzip_go_on(gp_gzip_t *gzip)
{
    block_t *full = &gzip->blocks[gzip->filling];
    if (gzip->len > 0 && gzip->helpers == NULL) {
        gzip->helpers = gp_helpers_open();
        gzip->wanted = gzip->helpers != NULL ? GP_GZIP_BLOCKS : 1;
    }
    gzip_give_block(gzip, full, false);
    block_t *next = gzip_next_block(gzip);
    gzip_take_block(gzip, next);
    size_t have = full->dictionary_len + full->len, keep = have < WINDOW_BYTES ? have : WINDOW_BYTES;
    memmove(next->in, full->in + have - keep, keep);
    next->dictionary_len = keep;
    next->len = 0;
}

void gp_gzip_write(gp_gzip_t *gzip, const void *bytes, size_t len)
{
    for (const unsigned char *at = bytes; len > 0;) {
        block_t *block = &gzip->blocks[gzip->filling];
        size_t room = BLOCK_BYTES - block->len, part = len < room ? len : room;
        memcpy(block->in + block->dictionary_len + block->len, at, part);
        block->len += part;
        at += part;
        len -= part;
        if (block->len == BLOCK_BYTES)
            gzip_go_on(gzip);
    }
}

static void gzip_put_number(unsigned char *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

int gp_gzip_close(gp_gzip_t *gzip)
{
    unsigned char trailer[8];
    if (gzip == NULL)
        return 0;
    gzip_give_block(gzip, &gzip->blocks[gzip->filling], true);
    for (unsigned i = 1; i <= gzip->count; i++) // the oldest is behind the one that is filled
        gzip_take_block(gzip, &gzip->blocks[(gzip->filling + i) % gzip->count]);
    gzip_put_number(trailer, gzip->crc);
    gzip_put_number(trailer + 4, gzip->len);
    fwrite(trailer, 1, sizeof(trailer), gzip->out);
    gp_helpers_close(gzip->helpers);
    for (unsigned i = 0; i < gzip->count; i++)
        gzip_free_block(&gzip->blocks[i]);
    int result = gzip->failed ? -EIO : 0;
    free(gzip);
    return result;
}
