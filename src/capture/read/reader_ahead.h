// SPDX-License-Identifier: MIT
// Chunks of a large capture, decompressed by a thread of the program before they are handled, in the order of the file.
//
// Model: chunks are gathered in batches, with copies of their bytes; a full batch is given to a helper
// (base/helpers.h), and handled when as many batches as there are came after it. A chunk too large for a batch is
// decompressed where it is handled. Nothing else is done ahead: handlers see the same, and meet the same errors, as
// without.
//
// Order of calls: open -> give... -> end -> close; after an error close at once. Memory: GP_AHEAD_BYTES.
// Threads: one at a time. Signals: not safe.
#pragma once

#include <stdbool.h>

#include "capture/read/reader_payload.h"

enum { GP_AHEAD_BYTES = 6 << 20 };

typedef struct gp_reader_chunk { // that was found whole
    gp_chunk_header_t header;
    uint64_t at;            // where in the file it begins
    uint64_t read;          // bytes that were read up to then
    bool is_wanted;         // its payload is
    const uint8_t *payload; // as in the file; when it is handled, decompressed
    size_t len;
    int error; // of that: 0, -EBADMSG, -ENOMEM
} gp_reader_chunk_t;

typedef struct gp_reader_ahead gp_reader_ahead_t;

// Returns 0 or a negative errno value, which ends the reading.
typedef int gp_reader_chunk_handler_t(void *context, const gp_reader_chunk_t *chunk);

// Returns NULL where no threads are allowed, or memory is short.
gp_reader_ahead_t *gp_reader_ahead_open(gp_reader_chunk_handler_t *handle, void *context);

// Have a chunk handled, sooner or later. Returns 0 or a handler's error.
int gp_reader_ahead_give(gp_reader_ahead_t *ahead, const gp_reader_chunk_t *chunk);

// Have all handled that were given. Returns 0 or a handler's error.
int gp_reader_ahead_end(gp_reader_ahead_t *ahead);

// NULL is allowed. Chunks not handled yet never are.
void gp_reader_ahead_close(gp_reader_ahead_t *ahead);

// Decompress a chunk's payload here and now, valid until the next call.
void gp_reader_chunk_decompress(gp_reader_payload_t *payload, gp_reader_chunk_t *chunk);
