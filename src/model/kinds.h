// SPDX-License-Identifier: MIT
// Kinds and states of the things that are recorded. Their numbers are in capture files: they never change.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/engines.h"
#include "model/location.h"

enum gp_coro_kind {
    GP_CORO_THREAD = 1,    // a thread's own stack
    GP_CORO_ANNOUNCED = 2, // created through a hook or prof_coro_create()
    GP_CORO_FOUND = 3,     // a stack that no hook announced
    GP_CORO_POLLED = 4,    // read at samples: its CPU time is that of the samples, switches and waits are not known
    GP_CORO_GROUP = 5,     // no coroutine: what a store was asked to divide its samples into
};

// Further facts about a stack that no hook announced: a whole mapping of /proc/self/maps.
enum gp_region_kind {
    GP_REGION_GUARDED =
        1, // memory that cannot be touched lies right below: made to be a stack, most likely of one coroutine
    GP_REGION_HEAP = 2, // of the heap (brk): several coroutines may have their stacks in it, and be shown as one
    GP_REGION_FILE = 4, // a file is mapped there, or a program's variables
};

enum gp_stack_flag {
    GP_STACK_TRUNCATED = 1,
    GP_STACK_INCOMPLETE = 2,
    GP_STACK_SWITCHING = 4,
};

enum gp_sample_kind {      // what the weight is
    GP_KIND_CPU = 0,       // on-CPU time really passed on this thread since its last sample
    GP_KIND_PREEMPTED = 1, // time that the thread could run but did not, while this coroutine had it
    GP_KIND_PARKED = 2,    // waiting time that the sample stands for; the stack is where the coroutine parked
    GP_KIND_READY = 3,     // the same: it was runnable
    GP_KIND_WAITING = 4,   // the same: which of the two is unknown
    GP_KIND_BLOCKED = 5,   // the thread slept in the kernel with this coroutine on it; the stack is from there
    GP_KIND_GIL = 6,       // the thread waited for the lock of an interpreter; the stack is from there
    GP_KIND_QUEUED = 8,    // a call waited in the queue of a pool of threads; 7: "lock", of nothing yet
    GP_KIND_COUNT = 9,
};

// The pseudo-frame that stands for a kind at the leaf of a stack; 0 = none.
static inline enum gp_pseudo gp_kind_leaf(uint32_t kind)
{
    static const uint8_t leaves[GP_KIND_COUNT] = {
        [GP_KIND_PREEMPTED] = GP_PSEUDO_PREEMPTED, [GP_KIND_BLOCKED] = GP_PSEUDO_BLOCKED,
        [GP_KIND_PARKED] = GP_PSEUDO_PARKED,       [GP_KIND_READY] = GP_PSEUDO_READY,
        [GP_KIND_WAITING] = GP_PSEUDO_WAITING,     [GP_KIND_GIL] = GP_PSEUDO_GIL,
        [GP_KIND_QUEUED] = GP_PSEUDO_QUEUED,
    };
    return (enum gp_pseudo)leaves[kind];
}

// Does a stack say by itself what gp_kind_leaf() would say?
//   innermost: its innermost frame.
static inline bool gp_kind_is_told(gp_loc_t innermost)
{
    return innermost == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_NOT_STARTED);
}

enum gp_census_state {
    GP_CENSUS_UNKNOWN = 0, // not sampled, or it is GP_CORO_POLLED: switches were not seen
    GP_CENSUS_RUNNING = 1, // on the CPU, or preempted
    GP_CENSUS_BLOCKED = 2, // its thread sleeps in the kernel; the stack is the one there
    GP_CENSUS_READY = 3,   // runnable, waits for the loop
    GP_CENSUS_PARKED = 4,
    GP_CENSUS_WAITING = 5, // ready or parked, unknown which
    GP_CENSUS_NEW = 6,     // has not run yet
    GP_CENSUS_AWAY = 7,    // a thread's own stack while one of its coroutines runs
    GP_CENSUS_IDLE = 8,    // in its pool: it waits for work
    GP_CENSUS_STATES = 9,
};

enum gp_census_flag {
    GP_CENSUS_AT_LEAST = 1, // it was in this state before sampling began: state_ns is the time since
    GP_CENSUS_FATAL = 2,    // here a fatal signal came in
};

// A census is asked for by a queued signal: this is the upper half of its value, the asker's number the lower one.
#define GP_CENSUS_MAGIC 0x47504353u // "GPCS"
