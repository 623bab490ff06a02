// SPDX-License-Identifier: MIT
// Long slices, by the code that most of each was in: what they ran, and which coroutines waited meanwhile.
//
// Model: of a slice the path is followed from the root of its stacks on, into the function that has more than half of
// its time, as long as there is one: the names on it are its place. Delays say which were ready meanwhile, where
// the runtime tells; activities say which waited at all, and whether the slice ran, slept or did not get a processor.
//
// Order of calls: begin -> the reading is read -> end -> any use -> free. The dataset has GP_KEEP_HOGS. Threads: one at
// a time. Signals: not safe.
#pragma once

#include "facts/dataset.h"
#include "facts/names.h"

typedef struct gp_long_slice {
    const gp_dataset_hog_t *hog;
    char *place;       // "innermost < its caller < ...", four at most; "[no samples]"
    gp_loc_t *path;    // one location of each function on it, root first
    uint32_t depth;    // of the path
    uint32_t others;   // coroutines of its thread that waited for most of it
    uint64_t delay_ns; // what others were ready meanwhile, together
    uint64_t unseen_ns, delays;
    uint64_t slices_ns, cpu_ns, blocked_ns; // of the activity that it was in; zeros = not known
} gp_long_slice_t;

typedef struct gp_long_slices {
    const gp_dataset_t *dataset;
    gp_symbolizer_t *symbolizer;
    uint32_t trace;         // the one with the delays that count: number; 0 = all
    gp_long_slice_t *items; // by thread, then by beginning: those of a thread do not overlap
    size_t count;
} gp_long_slices_t;

// Find them: all but what event loops slept. Returns 0 or a negative errno value. Free in either case.
//   trace: number of the trace of which delays count; 0 = all.
int gp_long_slices_begin(gp_long_slices_t *slices, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                         uint32_t trace, gp_reading_t *reading);

// Is a delay one that counts?
static inline bool gp_long_slices_has(const gp_long_slices_t *slices, const gp_dataset_delay_t *delay)
{
    return slices->trace == 0 || delay->trace == slices->trace;
}
void gp_long_slices_free(gp_long_slices_t *slices);

// A coroutine that sleeps on its thread may be the loop, which waits for something to do: is it, or does it sleep where
// loops do?
//   stack: number; 0 = not known.
bool gp_sleeps_as_loops_do(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t coro, uint32_t stack);
