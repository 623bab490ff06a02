// SPDX-License-Identifier: MIT
// Stacks above a coroutine's with --stitch: the stack at which it was created, above this the one at which its creator
// was, and so on.
//
// Model: gp_stitches_init() goes through all coroutines and gives a number to each distinct sequence of stacks of
// creation; there are few of them. A creator is older than its creations: anything else is damage, and ends the
// sequence. A stack right above itself (a coroutine makes its successor, which does the same) is shown once.
#pragma once

#include "facts/dataset.h"

enum {
    GP_STITCH_LEVELS = 16,  // stacks: of a longer sequence the nearest are shown
    GP_STITCH_FRAMES = 512, // in all of them together
};

#define GP_STITCH_MARK "[spawned]" // pseudo-frame between a creator's stack and what it created
#define GP_STITCH_CUT  "[truncated]"

typedef struct gp_stitch {
    uint32_t stacks[GP_STITCH_LEVELS]; // numbers in the dataset, the nearest first
    uint32_t count;
    uint32_t is_cut; // 1 = there would be more
} gp_stitch_t;

typedef struct gp_stitches { // zero-initialized = nothing is stitched; may be freed
    uint32_t *of_coro;       // uint32_t[coro_count]: number in `each`; NULL = 0 for all
    gp_stitch_t *each;       // number 0 is empty
    size_t count, capacity;
    gp_index_t index;
} gp_stitches_t;

// Returns 0 or -ENOMEM; free in both cases.
int gp_stitches_init(gp_stitches_t *stitches, const gp_dataset_t *dataset);

// Put what stands above the stacks of a coroutine together, root first.
//   stack, pseudo: called for each stack and each mark; what they return below 0 is returned.
typedef struct gp_stitch_taker {
    int (*stack)(void *context, const gp_facts_stack_t *stack);
    int (*pseudo)(void *context, const char *name);
    void *context;
} gp_stitch_taker_t;
int gp_stitches_take(const gp_stitches_t *stitches, const gp_dataset_t *dataset, uint32_t coro,
                     const gp_stitch_taker_t *taker);

void gp_stitches_free(gp_stitches_t *stitches);
