// SPDX-License-Identifier: MIT
#include "export/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    LEVEL = 1, // a third of level 6's time for 10 % more bytes
    WINDOW_BITS = 15,
    WITH_GZIP_HEADER = 16,
    MEMORY_LEVEL = 8,
};

gp_gzip_t *gp_gzip_open(FILE *out)
{
    gp_gzip_t *gzip = calloc(1, sizeof(*gzip));
    if (gzip == NULL)
        return NULL;
    gzip->out = out;
    if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, WINDOW_BITS + WITH_GZIP_HEADER, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return gzip;
    free(gzip);
    errno = ENOMEM;
    return NULL;
}

static void deflate_all(gp_gzip_t *gzip, int flush)
{
    do {
        gzip->stream.next_out = gzip->buffer;
        gzip->stream.avail_out = sizeof(gzip->buffer);
        deflate(&gzip->stream, flush);
        fwrite(gzip->buffer, 1, sizeof(gzip->buffer) - gzip->stream.avail_out, gzip->out);
    } while (gzip->stream.avail_out == 0);
}

void gp_gzip_write(gp_gzip_t *gzip, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    while (len > 0) {
        unsigned part = len < UINT_MAX ? (unsigned)len : UINT_MAX;
        gzip->stream.next_in = (unsigned char *)(uintptr_t)at; // zlib does not write there
        gzip->stream.avail_in = part;
        deflate_all(gzip, Z_NO_FLUSH);
        at += part;
        len -= part;
    }
}

void gp_gzip_close(gp_gzip_t *gzip)
{
    if (gzip == NULL)
        return;
    gzip->stream.avail_in = 0;
    deflate_all(gzip, Z_FINISH);
    deflateEnd(&gzip->stream);
    free(gzip);
}
