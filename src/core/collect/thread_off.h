// SPDX-License-Identifier: MIT
// How long ordinary threads could run and did not, by the kernel: preempted, woken late, throttled, stopped.
//
// Model: the account of a thread's own stack (slice.h) takes all that the thread was off the CPU between two coarse
// points for sleep, if it slept at all in between. The kernel counts the time for which a thread waits for a processor;
// the collector reads that as it looks at threads, and when it writes ledgers. A process that was stopped shows in the
// collector's own waits, which end much too late. The sum of both since the first reading replaces the account's; the
// rest of the time off the CPU is sleep. Threads with coroutines keep their accounts: their own stacks are where loops
// wait. Waits for an interpreter's lock (gil_wait.h) keep all of their time. Where the kernel does not count (no
// /proc), accounts stay as they are.
//
// Collector only, under the drain lock, unless a declaration says otherwise. Signals: not safe.
// Source: Linux, Documentation/scheduler/sched-stats.rst: /proc/PID/task/TID/schedstat.
#pragma once

#include <stdbool.h>

#include "signal/thread.h"

// Has the thread never had a coroutine? Threads: any.
bool gp_thread_off_is_ordinary(const gp_thread_t *thread);

// Read what the kernel has of it now. Cost: three system calls.
void gp_thread_off_note(gp_thread_t *thread);

// The same of all threads, as a capture begins; of others the first sample does it.
void gp_thread_off_note_all(void);

// The ledger of an ordinary thread's own stack up to `now` (ticks), with what is not settled yet. Returns whether it is
// one. Cost: as above, and one more.
bool gp_thread_off_read(gp_thread_t *thread, uint64_t now, gp_ledger_t *ledger);

// The same for a ledger that was read when all was settled, at the thread's end or where its trace changed.
bool gp_thread_off_apply(const gp_thread_t *thread, gp_ledger_t *ledger);

// A sample has so much of it; and what no sample has yet, ns.
void gp_thread_off_told(gp_thread_t *thread, uint64_t ns);
uint64_t gp_thread_off_untold(const gp_thread_t *thread);

// The collector has slept since `since` (CLOCK_MONOTONIC, ns), and asked for `asked_ns` at most; UINT64_MAX: until it
// is woken up. Without the lock. Cost: ~1 us; three system calls twice a second, or where it came late.
void gp_thread_off_slept(uint64_t since, uint64_t asked_ns);
