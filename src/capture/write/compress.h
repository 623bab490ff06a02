// SPDX-License-Identifier: MIT
// Compression of chunks: zstd, linked into the library, in memory that is given to it once.
//
// Threads: a compressor belongs to one thread at a time. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct gp_compressor { // zero-initialized = has no memory yet
    void *memory;
    size_t bytes;
    void *context; // zstd's, in that memory
} gp_compressor_t;

// Get the memory, 570 KiB, of which small chunks touch a part. Idempotent. Returns 0 or -ENOMEM.
int gp_compressor_init(gp_compressor_t *compressor);

void gp_compressor_free(gp_compressor_t *compressor);

// Compress into one zstd frame that says its content size.
//   out: room for `room` bytes.
// Returns the frame's size; 0 when it would not be smaller than `len`. Allocates nothing.
size_t gp_compress(gp_compressor_t *compressor, const void *data, size_t len, void *out, size_t room);
