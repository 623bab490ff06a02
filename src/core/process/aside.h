// SPDX-License-Identifier: MIT
// Threads of greenprof's own step aside for a call of the program's: they end, and begin again after it.
//
// Model: a thread has its state (credentials, capabilities, their leftovers, filters, namespaces) from its creator. Own
// threads begun again after the program has changed its rights hold none that it has given up. Meanwhile none is in the
// way of glibc's set*id(), which changes all threads and ends the process where one has another answer, nor of calls
// that the kernel grants to processes with one thread only.
//
// Threads: any of the program's, one at a time; others wait. Signals: safe in the sense of setuid(): where a handler
// comes amid a change of greenprof's own, or amid this, nothing steps aside. Cost: 0.1 ms and more; of GP_ASIDE_ALL 1
// us, where none has other rights.
#pragma once

#include <stdbool.h>

typedef enum gp_aside_for {
    GP_ASIDE_ALONE, // a call that needs the only thread of the program
    GP_ASIDE_FIRST, // a call that changes the calling thread, where it is the first one: the rest follow it
    GP_ASIDE_ALL,   // a call that changes all threads, and ends the process where the rights of one do not allow it
} gp_aside_for_t;

typedef struct gp_aside { // what has ended
    bool is_away, collector, pacer;
} gp_aside_t;

void gp_aside_begin(gp_aside_t *aside, gp_aside_for_t what);
void gp_aside_end(const gp_aside_t *aside);

// End them for good: the process is left (coro/process_id.h).
void gp_aside_for_good(void);

// Wake waiting threads: they may not stay.
void gp_aside_wake(void);

// The way to wake libgreenprof's threads; NULL = there are none.
void gp_aside_wake_by(void (*wake)(void));
