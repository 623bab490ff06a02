// SPDX-License-Identifier: MIT
// Threads of greenprof's own step aside for a call of the program's: they end, and begin again after it.
//
// Model: a thread has its state (credentials, capabilities, what is kept of them, filters, namespaces) from the one
// that it was begun by. Own threads that begin again after the program has changed its own hold no right that it has
// given up; and none is there that glibc's set*id(), which change all threads and end the process where one of them has
// another answer, or the kernel, which lets only a process with one thread make some calls, could meet.
//
// Threads: any of the program's, one at a time; another one waits. Signals: safe in the sense of setuid(): where a
// handler comes amid a change of greenprof's own, or amid this, nothing steps aside. Cost: 0.1 ms and more; of
// GP_ASIDE_ALL 1 us, where none has other rights.
#pragma once

#include <stdbool.h>

typedef enum gp_aside_for {
    GP_ASIDE_ALONE, // a call that needs the only thread of the program
    GP_ASIDE_FIRST, // one that changes the calling thread, where that is the first one: the rest of them follows it
    GP_ASIDE_ALL,   // one that changes all threads, and ends the process where one of them has other rights to do so
} gp_aside_for_t;

typedef struct gp_aside { // what has ended
    bool is_away, collector, pacer;
} gp_aside_t;

void gp_aside_begin(gp_aside_t *aside, gp_aside_for_t what);
void gp_aside_end(const gp_aside_t *aside);

// End them for good: the process is left (coro/process_id.h).
void gp_aside_for_good(void);

// Wake those that wait, so that they see that they may not stay.
void gp_aside_wake(void);

// What libgreenprof's threads wait for; NULL = there are none.
void gp_aside_wake_by(void (*wake)(void));
