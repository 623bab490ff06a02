// SPDX-License-Identifier: MIT
// Waits for locks, by lock: their length, their threads, and the code that held it meanwhile.
//
// Model: each wait is a sample of its own, or several that adjoin. In front of its stack stand names in brackets
// (core/collect/lock_words.h): the lock, the thread with it, and the code of that. Where the last is missing (mutexes
// of C, the interpreter's lock) samples of the thread at the same time tell.
//
// Order of calls: make -> any use -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "facts/dataset.h"
#include "facts/names.h"

typedef struct gp_lock_sum {
    gp_loc_t lock;  // its name in the capture; 0 = the interpreter's
    char name[160]; // "FILE:LINE": where it was made, or waited for first
    uint64_t waits, total_ns, median_ns, p99_ns, longest_ns;
    uint32_t victims;                         // coroutines and threads that waited
    char holder[96];                          // of the code below, a thread; "" = not known
    char function[256], file[256], code[384]; // that held it for longest; "F (FILE:LINE)"; "" = not known
    uint32_t line, most;                      // most: of lock_waits.c alone
    uint64_t held_ns;                         // of total_ns
} gp_lock_sum_t;

typedef struct gp_lock_waits {
    gp_lock_sum_t *items; // [count], that with most time first
    size_t count;
} gp_lock_waits_t;

// Read the capture for them. Returns 0 or a negative errno value. Free in either case.
//   kind:  GP_KIND_LOCK, or GP_KIND_GIL: one sum at most, of the interpreter's lock.
//   trace: number of the trace that waits; 0 = all.
int gp_lock_waits_make(gp_lock_waits_t *waits, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                       enum gp_sample_kind kind, uint32_t trace);
void gp_lock_waits_free(gp_lock_waits_t *waits);

typedef struct gp_lock_names { // in front of a stack; 0 = it has none of that kind
    gp_loc_t lock, holder, code;
    bool is_timed;
    uint32_t count; // of the frames that they are
} gp_lock_names_t;

gp_lock_names_t gp_lock_names_of(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t stack);

// Threads by the names that holders have. Returns 0 or -ENOMEM. Free in either case.
typedef struct gp_lock_holders { // zero-initialized = none
    const gp_dataset_t *dataset;
    struct gp_lock_holder_name *items; // [count], by name and start
    size_t count;
} gp_lock_holders_t;

int gp_lock_holders_make(gp_lock_holders_t *holders, const gp_dataset_t *dataset);
void gp_lock_holders_free(gp_lock_holders_t *holders);

// The thread meant by a holder's name: number of the coroutine of its own stack; GP_INDEX_NONE where there is no
// such one at that moment, or more than one.
uint32_t gp_lock_holder(const gp_lock_holders_t *holders, const char *name, uint64_t at_ns);
