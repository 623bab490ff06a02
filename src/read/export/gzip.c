// SPDX-License-Identifier: MIT
#include "export/gzip.h"

#include <endian.h>
#include <stdint.h>
#include <stdlib.h>

#include <libdeflate.h>

#include "base/memory.h"
#include "export/deflate.h"

struct gp_gzip {
    FILE *out;
    gp_deflate_t *deflate;
    uint32_t crc, len; // of the input; the length's lower bits
};

static void take(void *context, const uint8_t *bytes, size_t len)
{
    fwrite(bytes, 1, len, context);
}

gp_gzip_t *gp_gzip_open(FILE *out)
{
    // Deflate, no flags, no time; 4 = made fast; 3 = Unix. Source: RFC 1952, 2.3.
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3};
    gp_gzip_t *gzip = gp_memory_had(calloc(1, sizeof(*gzip)));
    if (gzip == NULL)
        return NULL;
    gzip->out = out;
    gzip->deflate = gp_deflate_open(take, out);
    if (gzip->deflate == NULL) {
        free(gzip);
        return NULL;
    }
    fwrite(head, 1, sizeof(head), out);
    return gzip;
}

void gp_gzip_write(gp_gzip_t *gzip, const void *bytes, size_t len)
{
    gzip->crc = libdeflate_crc32(gzip->crc, bytes, len);
    gzip->len += (uint32_t)len;
    gp_deflate_write(gzip->deflate, bytes, len);
}

void gp_gzip_close(gp_gzip_t *gzip)
{
    if (gzip == NULL)
        return;
    gp_deflate_close(gzip->deflate);
    const uint32_t tail[] = {htole32(gzip->crc), htole32(gzip->len)};
    fwrite(tail, 1, sizeof(tail), gzip->out);
    free(gzip);
}
