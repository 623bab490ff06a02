// SPDX-License-Identifier: MIT
// The collector's looks at sleepers, and at threads that wait, between its rounds.
//
// Model: a look visits the threads with news since they were last at rest (ready_threads.h): sleep_scan.h covers
// threads with a coroutine, thread_sleeps.h the others; scan_pace.h the pace. A thread at rest is left out from then
// on; once none has been left for a while the collector dozes: no looks, until a thread that leaves its rest wakes it
// up.
//
// Order: gp_wait_scan_are_wanted(); then for each look gp_wait_scan_plan(), a wait of gp_wait_scan_next_ns() unless it
// dozes, and gp_wait_scan_look().
//
// Threads: the collector's, without the drain lock, but where it is said. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct gp_look {
    bool with_threads; // those without coroutines are looked at, too
    bool dozes;        // until something leaves its rest
} gp_look_t;

// Does a sink want to know of waits? Else there are no looks.
bool gp_wait_scan_are_wanted(void);

// Plan the next look.
//   for_long: where it dozes, anything that a thread does is to wake the collector up.
void gp_wait_scan_plan(bool for_long, gp_look_t *look);

// How long to wait until the next look, ns.
//   slow: hundredths of the usual time, as gp_collector_slow_down() has it.
uint64_t gp_wait_scan_next_ns(uint64_t slow);

// Look, `after_ns` after the look before. drain: empties the rings. Takes the drain lock. Cost: that of
// gp_sleep_scan_look() for each thread.
void gp_wait_scan_look(const gp_look_t *look, uint64_t after_ns, void (*drain)(void));

// Hand on what is in the rings, once in a look: a slice's samples come in the order in which they were taken. Caller
// has the drain lock.
void gp_wait_scan_drain(void);

// Coming events are to be seen soon: the pace begins anew. And right after a rest: some looks are quick.
void gp_wait_scan_hurry(void);
void gp_wait_scan_hasten(void);

// Look so many times as seldom (sleep_scan.h): what is seen then stands for more. 1 = as usual. Threads: any.
void gp_wait_scan_stretch(unsigned times);

// In a forked child.
void gp_wait_scan_after_fork(void);
