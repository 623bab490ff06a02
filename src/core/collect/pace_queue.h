// SPDX-License-Identifier: MIT
// The pacer's queue: timers by the time at which they are due, and how often sleeping threads are looked at.
//
// Model: a binary heap, of the pacer's thread alone. A timer that another thread arms comes by way of gp_clock_armed.
#pragma once

#include <stddef.h>

#include "signal/clock_paced.h"

typedef struct gp_pace_entry {
    uint64_t due_ns; // on CLOCK_MONOTONIC
    gp_timer_t *timer;
} gp_pace_entry_t;

typedef struct gp_pace_queue { // all zero: empty
    gp_pace_entry_t *entries;
    size_t count, room;
} gp_pace_queue_t;

// Returns false when memory is short. Cost: O(log count).
bool gp_pace_put(gp_pace_queue_t *queue, gp_timer_t *timer, uint64_t due_ns);

// Take the earliest out. The queue is not empty. Cost: O(log count).
gp_pace_entry_t gp_pace_take(gp_pace_queue_t *queue);

// How long a thread idle since its last look is left alone.
//   interval_ns: if it ran; idle: how many threads are so.
// Returns ns: with few such threads the same, with many so long that looking at all of them costs the pacer about 1 %.
uint64_t gp_pace_idle_ns(uint64_t interval_ns, size_t idle);
