// SPDX-License-Identifier: MIT
// The collector: one thread, all signals blocked, that empties the rings and hands what was in them to the sinks.
//
// The thread sleeps on a futex while nothing is sampled. Everything it works on is guarded by the drain lock.
#pragma once

#include "collect/counter_sums.h"
#include "collect/drain_lock.h"
#include "collect/modules.h"
#include "collect/sink.h"

// Between two pieces of something long, GP_CORO_PIECE coroutines each: pass the drain lock, and answer threads that
// wait for their samples. Records that are retired meanwhile stay as they are. Collector only, which has the lock.
void gp_collector_between_pieces(void);

// Hand on what is in the rings. Collector only, which has the lock.
void gp_collector_drain(void);

// Start the thread. Idempotent; called under the sampler lock. Returns 0 or a negative errno value.
int gp_collector_start(void);

// Wait until every sample taken before this call has been handed on.
void gp_collector_sync(void);

// The same, but give up after `limit_ns`. Returns 0 or -ETIMEDOUT, -ESRCH where there is no collector. Signals: safe.
int gp_collector_sync_within(uint64_t limit_ns);

// Wake it up early. Signals: safe.
void gp_collector_kick(void);

// Sum of a counter over all threads, those that are gone included.
void gp_collector_counters(uint64_t counters[GP_COUNTER_COUNT]);

enum { GP_COLLECTOR_ROUND_NS = 50000000 }; // a ring holds 100 ms at 10 kHz and depth 20; where it fills faster it kicks

// Set the time between two rounds: at most twice GP_COLLECTOR_ROUND_NS, the initial value.
void gp_collector_set_round(uint64_t ns);

// Rounds come so much later, hundredths (100 = as they were set), unless a caller waits for one or a ring is pressed.
void gp_collector_slow_down(unsigned percent);

// A round begins at `monotonic_ns` at the latest, which is less than a second away; 0 = when it is due.
void gp_collector_look_by(uint64_t monotonic_ns);

// Let `add` put in what others count; with the drain lock held.
void gp_collector_add_counters(void (*add)(uint64_t counters[GP_COUNTER_COUNT]));

// In a forked child: the thread is gone, what it had counted is the parent's.
void gp_collector_after_fork(void);

// Is there a collector? Sampler's lock, or the program's only thread.
bool gp_collector_runs(void);
