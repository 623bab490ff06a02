// SPDX-License-Identifier: MIT
// The state of a walk along a critical path (critical_path.h), and what is emitted on the way.
#pragma once

#include "report/critical_path.h"
#include "report/path_items.h"

enum {
    GP_PATH_WAITERS_MAX = 100, // coroutines that wait for one another in a row
    GP_PATH_WAITS_NS = 1000,   // short waits that do not make an activity a divided one
};

typedef struct gp_path_piece { // of a running coroutine
    uint64_t from_ns, to_ns;
    uint32_t stack, state, flags;
} gp_path_piece_t;

// The sleep of an activity around a moment: pieces off the CPU in one place, as far as samples tell.
typedef struct gp_path_sleep {
    uint64_t from_ns, to_ns; // empty: there is none
} gp_path_sleep_t;

// The sleep that was asked for last, and the pieces for which it is the answer.
typedef struct gp_path_slept {
    gp_path_sleep_t sleep;
    size_t lo, hi;       // pieces begun before the moment, [lo, hi]: it is the last before them; 1, 0 = none is known
    size_t first, after; // its own pieces
    uint32_t stack;
} gp_path_slept_t;

typedef struct gp_path_ended { // a coroutine that was over
    uint64_t spawner_id, end_ns;
    uint32_t coro;
} gp_path_ended_t;

typedef struct gp_path_walk {
    const gp_dataset_t *dataset;
    const gp_requests_t *requests;
    const gp_path_group_t *group;
    uint32_t request;
    gp_path_segment_t *segments; // the last one first
    size_t count, capacity;
    gp_path_piece_t *pieces; // the first one first; and whose they are, NULL = nobody's:
    const gp_path_item_t *divided;
    size_t piece_count, piece_capacity;
    gp_path_slept_t slept;
    uint32_t waiters[GP_PATH_WAITERS_MAX]; // coroutines that the way has come from
    uint32_t waiter_count;
    uint32_t inferred;      // how many of the ways that it is on now are; all segments are marked meanwhile
    gp_path_ended_t *ended; // of the trace, by spawner and end
    size_t ended_count, ended_capacity;
    int error;
} gp_path_walk_t;

static inline uint64_t gp_path_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t gp_path_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// Add a segment before the others, or to the first of them. A failure is in the walk.
void gp_path_emit(gp_path_walk_t *walk, gp_path_segment_t segment);

// A sample of a wait that ended in (from_ns, to_ns]: the first after `at_ns`, or else the last before; NULL = there is
// none.
const gp_path_item_t *gp_path_wait_sample(const gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns,
                                          uint64_t at_ns);

static inline uint32_t gp_path_stack_of(const gp_path_item_t *sample)
{
    return sample != NULL && sample->stack != 0 ? sample->stack : GP_INDEX_NONE;
}

// The first of a coroutine's items that begin after a moment; others, or the end, where it has none.
size_t gp_path_first_after(const gp_path_item_t *items, size_t count, uint32_t coro, uint64_t at_ns);

void gp_path_add_piece(gp_path_walk_t *walk, uint64_t from_ns, uint64_t to_ns, uint32_t state, uint32_t stack);

// Make the pieces of a whole activity, in order, add up to its times; in no order. Where these are not known, what no
// sample tells is not known.
void gp_path_fit(gp_path_walk_t *walk, const gp_path_item_t *activity);

// The pieces that there are, put by while the way goes on with another coroutine.
typedef struct gp_path_pieces {
    gp_path_piece_t *pieces;
    const gp_path_item_t *divided;
    size_t count, capacity;
    gp_path_slept_t slept;
} gp_path_pieces_t;

gp_path_pieces_t gp_path_put_by(gp_path_walk_t *walk);
void gp_path_take_back(gp_path_walk_t *walk, gp_path_pieces_t pieces);

// The last sleep of an activity that began before a moment.
gp_path_sleep_t gp_path_sleep_before(gp_path_walk_t *walk, const gp_path_item_t *activity, uint64_t at_ns);

// Emit [from_ns, to_ns) of an activity, in which its coroutine had its thread: divided by its samples and its times.
void gp_path_emit_running(gp_path_walk_t *walk, const gp_path_item_t *activity, uint64_t from_ns, uint64_t to_ns);
