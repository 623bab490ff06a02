// SPDX-License-Identifier: MIT
// Fixed rules for switch routines that carry no unwind table, recognised by their whole body.
//
// A routine's body is compared byte by byte, so the rule at each offset is exact. The folders of runtimes
// (runtime-hooks/) add what they know as the library is loaded.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "unwind/packed_row.h"

// From `offset` on (until the next entry) this row holds. A return address just below the stack
// pointer is still where it was: nothing writes there before the routine's final jump.
typedef struct gp_switch_step {
    uint8_t offset;
    uint8_t cfa_words; // CFA = stack pointer + 8n
    uint8_t fp_slot;   // frame pointer at CFA - 8n, 0: in its register
} gp_switch_step_t;

typedef struct gp_switch_routine {
    const uint8_t *body;
    size_t len;
    const gp_switch_step_t *steps; // by offset; the first is 0
    size_t step_count;
} gp_switch_routine_t;

#define GP_SWITCH_ROUTINE(body, steps)                                                                                 \
    {                                                                                                                  \
        body, sizeof(body), steps, sizeof(steps) / sizeof(gp_switch_step_t)                                            \
    }

// Add a routine, which stays. Returns 0 or -ENOSPC. Threads: one at a time; walks may run meanwhile. Signals: not safe.
int gp_switch_routine_add(const gp_switch_routine_t *routine);

// The packed row for the code around `pc`, or 0 where it is no such routine.
//   [lo, hi): the code that may be read. Signals: safe. Cost: ~0.1 us.
gp_packed_row_t gp_switch_rule(uintptr_t pc, uintptr_t lo, uintptr_t hi);
