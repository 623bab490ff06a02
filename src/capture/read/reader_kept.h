// SPDX-License-Identifier: MIT
// Samples of a capture that is read twice: what the second reading needs of them, kept by the first.
//
// Model: packed chunks of samples are kept as packed chunks that have fewer columns, up to a limit. A reading of them
// takes them away. Samples that did not fit are behind `to` in the file.
//
// Order of calls: begin -> keep... (by the reader) -> take -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "capture/read/reader.h"

typedef struct gp_kept_block gp_kept_block_t;

typedef struct gp_reader_kept { // zero-initialized = nothing is kept
    uint64_t words;             // GP_SAMPLE_WORDS() that are kept
    size_t room;                // bytes that it may still take
    gp_kept_block_t *first, *last;
    uint64_t to; // samples before that byte of the file are here; UINT64_MAX = all are
} gp_reader_kept_t;

// Begin with nothing.
//   words: GP_SAMPLE_WORDS() to keep, not 0.
//   room:  bytes.
void gp_reader_kept_begin(gp_reader_kept_t *kept, uint64_t words, size_t room);

// Keep a chunk of samples, if there is room and none before it is missing.
//   payload: packed, and found to be right; NULL: of a kind that is not kept.
//   at:      where in the file the chunk begins.
void gp_reader_keep(gp_reader_kept_t *kept, const uint8_t *payload, uint64_t at);

// Are these words of samples here?
static inline bool gp_reader_kept_has(const gp_reader_kept_t *kept, uint64_t words)
{
    return words != 0 && (words & ~kept->words) == 0;
}

// Hand out what is here, which is here no more. Returns 0 or a handler's error.
int gp_reader_kept_take(gp_reader_kept_t *kept, const gp_taker_t *takers);

void gp_reader_kept_free(gp_reader_kept_t *kept);
