// SPDX-License-Identifier: MIT
// Where threads sleep while a coroutine has them: the stack of a system call that holds up a whole event loop.
//
// Model: on-CPU timers do not fire in a thread that sleeps, and a signal sent to it would cut its system call short. So
// the collector looks at it from outside, every 5 ms on average, or less often where none sleeps (scan_pace.h), at
// irregular intervals: /proc says whether it sleeps in a system call, and where its stack pointer is. A thread found
// asleep is charged with the time since the look before, so that what a coroutine sleeps is charged to where it sleeps,
// on average. A thread that sleeps on, without CPU time, is looked at less and less often, after 1/64 of its sleep so
// far and once a second in the end. Nothing is done to the thread. Threads that are on their own stack are left out:
// event loops sleep there. Threads there for a while are not even looked at. For threads that have no coroutines see
// thread_sleeps.h.
#pragma once

#include "collect/sink.h"

// Walk the stack of a thread that sleeps in a system call while it has `coro`, or its own stack, since `since` (ticks).
//   frames: uintptr_t[max], innermost first. flags: enum gp_unwind_flag.
// Returns the number of frames, 0 where the stack is not known; -EAGAIN where it does not sleep, or went on meanwhile.
// Caller holds the drain lock. Cost: ~10 us.
int gp_sleep_scan_walk(gp_thread_t *thread, prof_coro_t *coro, uint64_t since, uintptr_t *frames, size_t max,
                       unsigned *flags);

// The thread with a coroutine on it at this moment, or as its own stack; NULL = none, or it is not known. Caller holds
// the drain lock. Cost: ~5 ns per thread that has coroutines.
gp_thread_t *gp_sleep_scan_thread_of(const prof_coro_t *coro, uint64_t id);

// Look at one thread; rings are drained where it sleeps. Caller holds the drain lock. Collector only.
//   found: set to true where it slept, and that has been handed on; else left as it is.
// Returns whether the thread is to be looked at again. false: long on its own stack, the thread tells when it leaves
// (gp_slice_prepare()); its clock was not read. Cost: ~5 ns for a thread on its own stack, else ~1 us; ~10 us for one
// that sleeps.
bool gp_sleep_scan_look(gp_thread_t *thread, bool *found);

// Look at a thread that has a coroutine, whether it is its time or not: what is due to its sleep so far is handed on.
// Caller holds the drain lock; rings are drained, or nearly so. Collector only. Cost: as above.
void gp_sleep_scan_look_now(gp_thread_t *thread);
