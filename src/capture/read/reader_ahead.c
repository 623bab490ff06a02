// SPDX-License-Identifier: MIT
#include "capture/read/reader_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "base/helpers.h"

enum {
    BATCHES = 4,
    BATCH_CHUNKS = 128,
    BATCH_BYTES = 256 * 1024,    // of the file
    BATCH_CONTENT = 1024 * 1024, // decompressed
};
_Static_assert(BATCHES *(BATCH_BYTES + BATCH_CONTENT) < GP_AHEAD_BYTES, "with what zstd needs");

typedef struct batch {
    gp_job_t job;
    gp_reader_chunk_t chunks[BATCH_CHUNKS];
    size_t count;
    uint8_t *bytes; // copies of payloads, each at 8 bytes
    size_t len;
    size_t content; // bytes that payloads take when they are decompressed
    gp_reader_payload_t payload;
} batch_t;

struct gp_reader_ahead {
    gp_reader_chunk_handler_t *handle;
    void *context;
    gp_helpers_t *helpers;
    batch_t batches[BATCHES]; // a ring
    unsigned filling;
    gp_reader_payload_t payload; // of chunks that do not fit
};

static size_t reader_ahead_padded(size_t len)
{
    return (len + 7) & ~(size_t)7;
}

static void reader_ahead_decompress_batch(gp_job_t *job)
{
    batch_t *batch = (batch_t *)job;
    size_t at = 0;
    int error = batch->content > 0 ? gp_reader_payload_room(&batch->payload, batch->content) : 0;
    for (size_t i = 0; i < batch->count; i++) {
        gp_reader_chunk_t *chunk = &batch->chunks[i];
        if (!chunk->is_wanted || !(chunk->header.flags & GP_CHUNK_ZSTD))
            continue;
        chunk->error = error < 0 ? error : gp_reader_decompress_at(&batch->payload, at, &chunk->payload, &chunk->len);
        at += chunk->error == 0 ? reader_ahead_padded(chunk->len) : 0;
    }
}

gp_reader_ahead_t *gp_reader_ahead_open(gp_reader_chunk_handler_t *handle, void *context)
{
    gp_helpers_t *helpers = gp_helpers_open();
    gp_reader_ahead_t *ahead = helpers != NULL ? calloc(1, sizeof(*ahead)) : NULL;
    bool has_room = ahead != NULL;
    if (ahead == NULL) {
        gp_helpers_close(helpers);
        return NULL;
    }
    *ahead = (gp_reader_ahead_t){.handle = handle, .context = context, .helpers = helpers};
    for (size_t i = 0; i < BATCHES; i++) {
        ahead->batches[i].job.work = reader_ahead_decompress_batch;
        ahead->batches[i].bytes = malloc(BATCH_BYTES);
        has_room = has_room && ahead->batches[i].bytes != NULL;
    }
    if (has_room)
        return ahead;
    gp_reader_ahead_close(ahead);
    return NULL;
}

// Handle what is in a batch, which is empty then.
static int reader_ahead_handle_batch(gp_reader_ahead_t *ahead, batch_t *batch)
{
    int result = 0;
    gp_helpers_take(ahead->helpers, &batch->job);
    for (size_t i = 0; i < batch->count && result == 0; i++)
        result = ahead->handle(ahead->context, &batch->chunks[i]);
    batch->count = batch->len = batch->content = 0;
    return result;
}

// The batch is full: the oldest one is the next to be filled.
static int reader_ahead_go_on(gp_reader_ahead_t *ahead)
{
    gp_helpers_give(ahead->helpers, &ahead->batches[ahead->filling].job);
    ahead->filling = (ahead->filling + 1) % BATCHES;
    return reader_ahead_handle_batch(ahead, &ahead->batches[ahead->filling]);
}

int gp_reader_ahead_end(gp_reader_ahead_t *ahead)
{
    int result = 0;
    gp_helpers_give(ahead->helpers, &ahead->batches[ahead->filling].job);
    for (unsigned i = 1; i <= BATCHES && result == 0; i++)
        result = reader_ahead_handle_batch(ahead, &ahead->batches[(ahead->filling + i) % BATCHES]);
    return result;
}

void gp_reader_chunk_decompress(gp_reader_payload_t *payload, gp_reader_chunk_t *chunk)
{
    if (chunk->is_wanted)
        chunk->error = gp_reader_decompress(payload, chunk->header.flags, &chunk->payload, &chunk->len);
}

static int reader_ahead_handle_here(gp_reader_ahead_t *ahead, const gp_reader_chunk_t *chunk)
{
    gp_reader_chunk_t here = *chunk;
    int result = gp_reader_ahead_end(ahead);
    if (result < 0)
        return result;
    gp_reader_chunk_decompress(&ahead->payload, &here);
    return ahead->handle(ahead->context, &here);
}

int gp_reader_ahead_give(gp_reader_ahead_t *ahead, const gp_reader_chunk_t *chunk)
{
    bool is_packed = chunk->is_wanted && chunk->header.flags & GP_CHUNK_ZSTD;
    size_t len = chunk->is_wanted ? reader_ahead_padded(chunk->len) : 0;
    size_t content = is_packed ? gp_reader_content_len(chunk->payload, chunk->len) : 0;
    batch_t *batch = &ahead->batches[ahead->filling];
    if (len > BATCH_BYTES || content > BATCH_CONTENT - 8)
        return reader_ahead_handle_here(ahead, chunk);
    content = is_packed ? reader_ahead_padded(content) + 8 : 0;
    int result = 0;
    if (batch->count == BATCH_CHUNKS || batch->len + len > BATCH_BYTES || batch->content + content > BATCH_CONTENT) {
        result = reader_ahead_go_on(ahead);
        batch = &ahead->batches[ahead->filling];
    }
    if (result < 0)
        return result;
    gp_reader_chunk_t *copy = &batch->chunks[batch->count++];
    *copy = *chunk;
    if (chunk->is_wanted)
        copy->payload = memcpy(batch->bytes + batch->len, chunk->payload, chunk->len);
    batch->len += len;
    batch->content += content;
    return 0;
}

void gp_reader_ahead_close(gp_reader_ahead_t *ahead)
{
    if (ahead == NULL)
        return;
    for (size_t i = 0; i < BATCHES; i++)
        gp_helpers_take(ahead->helpers, &ahead->batches[i].job);
    gp_helpers_close(ahead->helpers);
    for (size_t i = 0; i < BATCHES; i++) {
        gp_reader_payload_free(&ahead->batches[i].payload);
        free(ahead->batches[i].bytes);
    }
    gp_reader_payload_free(&ahead->payload);
    free(ahead);
}
