// SPDX-License-Identifier: MIT
// A gzip stream into a FILE. The same bytes in give the same bytes out: no time, no name.
// Threads: one at a time. Signals: not safe.
#pragma once

#include <stdio.h>
#include <zlib.h>

typedef struct gp_gzip {
    z_stream stream;
    FILE *out;
    unsigned char buffer[1 << 15];
} gp_gzip_t;

// Returns NULL and errno.
gp_gzip_t *gp_gzip_open(FILE *out);

// Errors stay in the stream's error flag.
void gp_gzip_write(gp_gzip_t *gzip, const void *bytes, size_t len);

// Write what is left, and free. NULL is allowed.
void gp_gzip_close(gp_gzip_t *gzip);
