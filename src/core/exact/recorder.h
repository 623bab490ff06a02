// SPDX-License-Identifier: MIT
// Exact mode: every call of an instrumented function is counted, per profile.
//
// Model: while at least one recorder runs, each coroutine that a running recorder covers has a shadow stack of the
// instrumented functions it is in (exact_stack.h). A call is counted when it begins, and its times are added when it
// ends, in every recorder of the coroutine that was running when it began. So profiles that overlap do not see each
// other, and a function entered before one began is not in it.
//
// A recorder is of one profile, or of the capture. Whatever runs, starts and stops: gp_exact_epoch moves with it, and
// shadow stacks look up anew what covers them. gp_exact_stop() waits until no thread is in an event that began before.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exact/exact_site.h"
#include "exact/exact_tree.h"
#include "greenprof/exact.h"
#include "model/call_count.h"
#include "model/counters.h"

typedef struct gp_exact {
    struct gp_exact *next; // running ones of thread or process scope
    prof_scope_t scope;
    uint32_t thread_index;  // PROF_SCOPE_THREAD
    uint64_t run;           // odd while it runs; no two runs of any recorder have the same number
    gp_exact_tree_t *trees; // what threads have counted in this run
    gp_exact_tree_t *total; // and all in earlier ones
} gp_exact_t;

typedef struct gp_exact_path { // a function as called by way of others
    gp_loc_t loc;              // its first instruction; the root, at index 0, has none
    uint32_t parent;           // index, smaller than its own
    uint32_t function;         // number
    uint64_t calls, own_cpu_ns, own_wait_ns;
} gp_exact_path_t;

#define GP_EXACT_EPOCH_FIRST ((uint64_t)1 << 63) // above all addresses

// Raised whenever a recorder starts or stops; never GP_EXACT_SLOW.
extern _Atomic uint64_t gp_exact_epoch __attribute__((visibility("hidden")));

// Time without an event after which the thread's CPU clock is read (~0.6 us), in ticks; set by gp_exact_start().
extern uint64_t gp_exact_gap_ticks __attribute__((visibility("hidden")));

// Count an event that found no memory.
static inline void gp_exact_lose(void)
{
    atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_LOST_CALLS], 1, memory_order_relaxed);
}

// Recorders of thread and process scope that run. Under the lock of exact mode.
extern gp_exact_t *gp_exact_broad;

// A recorder that does not run, or NULL. Below: threads: any; signals: not safe; each takes the lock of exact mode.
gp_exact_t *gp_exact_new(prof_scope_t scope);
void gp_exact_free(gp_exact_t *recorder); // NULL is accepted; must not run

// Count from now on. The sampler has been acquired: its accounts give the CPU time. The scope of a request profile
// already points to it.
void gp_exact_start(gp_exact_t *recorder, uint32_t thread_index);

// Count no more: all of it is in `total` on return; calls in progress have the time until now.
void gp_exact_stop(gp_exact_t *recorder);

// Forget what was counted so far, also of calls in progress.
void gp_exact_restart(gp_exact_t *recorder);

// Counts so far: a tree of calls, flat.
//   paths: gp_exact_path_t[*count], allocated by malloc(), the root first; caller frees.
// Returns 0 or -ENOMEM. Caller holds the drain lock.
int gp_exact_collect(gp_exact_t *recorder, gp_exact_path_t **paths, size_t *count);

// The same by caller and callee.
//   calls: gp_call_count_t[*call_count], allocated by malloc(), in the order of pairs; caller frees.
// Returns 0 or -ENOMEM. Threads: any.
int gp_exact_pairs(const gp_exact_path_t *paths, size_t count, gp_call_count_t **calls, size_t *call_count);

// CPU time of all calls, where functions of a language are among them; else 0. Caller holds the drain lock.
uint64_t gp_exact_language_ns(gp_exact_t *recorder);

// A coroutine has left profiles that cover it.
static inline void gp_exact_scopes_changed(void)
{
    atomic_fetch_add_explicit(&gp_exact_epoch, 1, memory_order_release);
}

// A call of a language runtime's function begins or ends on the calling thread, with a known current coroutine; see
// gp_exact_enter_fast(). Signals: not safe. Cost: ~30 ns each.
//   now: gp_ticks_counter(), read a moment ago; 0: it is to be read
void gp_exact_enter(const gp_exact_site_t *site, uint64_t now);
void gp_exact_leave(const gp_exact_site_t *site, uint64_t now);

// Around fork, on the forking thread: before it all other locks are held, after it still all.
void gp_exact_before_fork(void);
void gp_exact_after_fork(bool child);
