// SPDX-License-Identifier: MIT
// State that the engine `monotonic` shares with the pacer, the sender of its signals.
#pragma once

#include "signal/clock_engine.h"

typedef struct gp_paced {    // the engine's state of a timer
    struct gp_timer *next;   // in gp_clock_armed
    _Atomic uint64_t due_ns; // on CLOCK_MONOTONIC; 0 = not armed
    _Atomic uint64_t interval_ns;
    _Atomic pid_t tid;
    _Atomic int signal_number;
    _Atomic uint64_t sent_cpu_ns;          // its thread's CPU clock when one was sent that no handler has got yet
    uint64_t sent_ns, lost_ns;             // pacer only: when it last sent; how long it waits before the next
    _Atomic uint64_t seen_ns, seen_cpu_ns; // when its thread was last looked at, and its CPU clock then
    uint64_t sleeps;         // handler only: voluntary context switches of its thread when it was there last
    _Atomic bool listed;     // there, or in the pacer's queue
    _Atomic bool is_refused; // the kernel, or a sandbox, does not let it be sent
    bool is_idle;            // pacer only: its thread had not run when it was looked at last
} gp_paced_t;
_Static_assert(sizeof(gp_paced_t) <= sizeof(((gp_timer_t *)0)->state), "an engine's state fits into a timer");

static inline gp_paced_t *gp_paced(gp_timer_t *timer)
{
    return (gp_paced_t *)timer->state;
}

// Timers armed, but not yet in the pacer's queue, by `next`. Any thread puts them in, the pacer takes all. Acquire to
// read.
extern _Atomic(gp_timer_t *) gp_clock_armed;

// The timer that the pacer is at. disarm() waits until it has left it.
extern _Atomic(gp_timer_t *) gp_clock_pacing;

// The pacer, which is a thread and so no part of this room: set once, before the engine is started.
typedef struct gp_pacer {
    int (*start)(void); // if it does not run yet. Returns 0 or a negative errno value
    void (*wake)(void); // a timer was armed
} gp_pacer_t;
extern const gp_pacer_t *gp_clock_pacer;
