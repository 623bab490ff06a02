// SPDX-License-Identifier: MIT
// The state of one walk, shared by its fast and its thorough half.
#pragma once

#include <stdint.h>

#include "unwind/memo.h"
#include "unwind/row_cache.h"
#include "unwind/step.h"
#include "unwind/unwind.h"

#define GP_LIKELY(x)   __builtin_expect(!!(x), 1)
#define GP_UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef struct gp_walk {
    gp_stack_memory_t stack;
    gp_frame_t frame;    // the frame that `row` governs; not stored yet
    gp_packed_row_t row; // without the volatile bit
    bool row_volatile;
    uint32_t slot; // where the row is cached, or GP_CACHE_SLOTS

    uintptr_t *frames, *out, *end; // out wraps to frames + 1: the root end overwrites the middle
    unsigned steps;                // frames stored, overwritten ones included

    uint32_t checked_module; // the last volatile module that was found in place
    gp_memo_use_t memo;

    const gp_unwind_regs_t *start; // where the walk began
    gp_unwind_cursor_t base;       // registers known in full: set once base_known
    bool start_exact, base_known;
    unsigned base_steps; // frames walked since `base`, or since `start`
} gp_walk_t;

static inline void gp_walk_store(gp_walk_t *w, uintptr_t lookup)
{
    *w->out++ = lookup;
    w->out = GP_UNLIKELY(w->out == w->end) ? w->frames + 1 : w->out;
    w->steps++;
    w->base_steps++;
}

// Find the row of w->frame in the cache or compute it. Leaves it checked and without its volatile bit.
void gp_walk_look_up(gp_walk_t *w);

// Step over return addresses as long as their rows are simple or the memo proves them. Returns GP_STEP_OK with a frame
// that has a special row and is not yet stored; anything else ends the walk.
enum gp_step gp_walk_fast(gp_walk_t *w);

// Step out of w->frame by its packed row, to another piece of the stack if it has such. Does not store.
enum gp_step gp_walk_step_packed(gp_walk_t *w);

// Store and step out of a frame with a special row, or of the interrupted one.
enum gp_step gp_walk_thorough(gp_walk_t *w);
