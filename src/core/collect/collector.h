// SPDX-License-Identifier: MIT
// The collector: one thread, all signals blocked, that empties the rings and hands each sample to the profiles in whose
// scope it lies and to the sink (the capture file).
//
// It sleeps on a futex while nobody samples. Everything it works on is guarded by the drain lock.
#ifndef GP_COLLECT_COLLECTOR_H
#define GP_COLLECT_COLLECTOR_H

#include <pthread.h>

#include "collect/modules.h"
#include "signal/sample.h"
#include "signal/thread.h"

extern pthread_mutex_t gp_drain_lock;

typedef struct gp_stack { // a sample's stack, as locations
    const gp_loc_t *locs; // [depth], innermost first
    size_t depth;
    unsigned flags; // enum gp_stack_flag
} gp_stack_t;

typedef struct gp_hog_sample { // a stack of a long slice, with the time it stands for
    gp_stack_t stack;
    uint64_t weight_ns;
} gp_hog_sample_t;

// Where everything goes besides the profiles. All calls come from the collector, under the drain lock.
typedef struct gp_sink {
    // thread: NULL for a wait that has not ended. weight_ns: instead of the sample's, of this kind.
    void (*sample)(const gp_sample_t *sample, gp_thread_t *thread, const gp_stack_t *stack, enum gp_sample_kind kind,
                   uint64_t weight_ns);
    void (*hog)(const gp_hog_mark_t *mark, gp_thread_t *thread, const gp_hog_sample_t *samples, size_t count);
    void (*delay)(const gp_delay_mark_t *mark, gp_thread_t *thread); // of the thread's latest hog with that start
    void (*activity)(const gp_activity_mark_t *mark, gp_thread_t *thread);
    void (*trace_mark)(const gp_trace_mark_t *mark);
    void (*coro_over)(prof_coro_t *coro);     // retired; its record is read one last time
    void (*thread_over)(gp_thread_t *thread); // exited, its ring is empty
    void (*round)(void);                      // after every round: time to write
} gp_sink_t;

// Use a sink, NULL = none. Takes the drain lock.
void gp_collector_set_sink(const gp_sink_t *sink);

// Hand on a wait. thread: NULL for one that has not ended. Caller holds the drain lock.
void gp_collector_take_wait(gp_thread_t *thread, const gp_sample_t *sample);

// Hand on a sample of a thread that sleeps. Caller holds the drain lock.
void gp_collector_take_sleep(gp_thread_t *thread, const gp_sample_t *sample);

// What else the collector's thread does after every round, holding no lock; NULL = nothing. Set once, before it starts.
void gp_collector_set_errand(void (*errand)(void));

// A sample's frames as locations, greenprof's own left out.
//   locs: room for GP_UNWIND_DEPTH_DEFAULT + 2. Caller holds the drain lock; modules are up to date.
void gp_collector_locate(const gp_sample_t *sample, gp_loc_t *locs, gp_stack_t *stack);

// Name a coroutine that nobody has named by what it runs, if its language knows how. Caller holds the drain lock.
void gp_collector_name(prof_coro_t *coro, uint64_t id, const gp_stack_t *stack);

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

// CPU time so far of threads that no signal reached, ns.
uint64_t gp_collector_unsampled_ns(void);

// In a forked child: the thread is gone, what it had counted is the parent's.
void gp_collector_after_fork(void);

#endif
