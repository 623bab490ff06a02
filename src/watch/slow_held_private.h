// SPDX-License-Identifier: MIT
// The facts of a process, by which slow_held.c finds the holders of its threads.
#pragma once

#include "facts/facts.h"
#include "watch/slow_held.h"

typedef struct gp_held_thread {
    uint32_t index;
    uint64_t switches, wakes; // of all that were on it
} gp_held_thread_t;

struct gp_held_process {
    gp_facts_t facts; // modules and stacks of the part that is read; its header
    uint64_t now_ns;  // CLOCK_MONOTONIC: the last that is known of it
    bool goes_on;     // the part that is read has ended, and another follows
    GP_TABLE(gp_held_coro_t) coros;
    GP_TABLE(gp_held_thread_t) threads;
};
