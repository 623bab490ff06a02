// SPDX-License-Identifier: MIT
// More bytes than memory should hold, sorted into parts as they come and read back part by part.
//
// Model: each part has a buffer; when all of them together hold GP_SPILL_BYTES they are appended to a temporary file.
// Few bytes stay in memory and need no file. A part's bytes come back in the order in which they were added.
//
// Order of calls: init -> add... -> read, any part, any number of times -> free. Threads: one at a
// time. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GP_SPILL_BYTES = 4 << 20 };

// Make a file in TMPDIR, else /tmp, seen by no other process and gone with its descriptor.
// Returns the descriptor or a negative errno value.
int gp_temporary_file(void);

// Write all of it at the descriptor's position. Returns 0 or a negative errno value.
int gp_temporary_write(int fd, const void *bytes, size_t len);

typedef struct gp_spill { // zero-initialized = none, may be freed
    struct gp_spill_part *parts;
    size_t count;
    size_t held; // bytes in the buffers
    int fd;      // -1 = there is no file yet
    uint64_t end;
} gp_spill_t;

// Returns 0 or -ENOMEM.
int gp_spill_init(gp_spill_t *spill, size_t count);

// Returns 0, -ENOMEM, or why the temporary file could not be written.
int gp_spill_add(gp_spill_t *spill, size_t part, const void *bytes, size_t len);

// How many bytes a part has.
uint64_t gp_spill_bytes(const gp_spill_t *spill, size_t part);

// Hand out a part, in pieces of a multiple of `unit` bytes each.
//   take: returns 0, or a negative value that ends the reading and is returned.
// Returns 0, -ENOMEM, -EIO, or what `take` returned.
int gp_spill_read(const gp_spill_t *spill, size_t part, size_t unit,
                  int (*take)(void *context, const void *bytes, size_t len), void *context);

void gp_spill_free(gp_spill_t *spill);
