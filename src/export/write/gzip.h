// SPDX-License-Identifier: MIT
// A gzip stream of one member into a FILE. The same bytes in give the same bytes out: no time, no name.
//
// Model: blocks are compressed one after the other, each with the end of the one before as its dictionary; of a large
// stream side by side, where the program allows threads (base/helpers.h). Memory: 0.7 MB a block, one or, with
// threads, at most GP_GZIP_BLOCKS. Threads: one at a time. Signals: not safe.
#pragma once

#include <stdio.h>

enum { GP_GZIP_BLOCKS = 8 };

typedef struct gp_gzip gp_gzip_t;

// Returns NULL and errno.
gp_gzip_t *gp_gzip_open(FILE *out);

// Errors of writing stay in the FILE's error flag.
void gp_gzip_write(gp_gzip_t *gzip, const void *bytes, size_t len);

// Write what is left, and free. NULL is allowed. Returns 0, or -EIO where zlib failed.
int gp_gzip_close(gp_gzip_t *gzip);
