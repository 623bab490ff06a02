// SPDX-License-Identifier: MIT
// Exact on-CPU time per coroutine: what a switch, a sample and a coarse point do to the accounts.
//
// Model: a slice is the time from one switch to the next. A short slice is charged by the switch clock (ticks), which
// cannot have hidden a preemption; a long one reads the thread's CPU clock (a coarse point) and is charged what that
// says passed since the coarse point before, less what short slices were charged meanwhile. So the sum over a thread's
// coroutines is its CPU clock, whatever was preempted or blocked. Where short slices were charged too much (they
// blocked for a moment), the excess is taken back from the thread's own stack first: that is where event loops wait.
//
// Threads: each function acts on the calling thread's block, from the thread (which sets `busy`) or its handler (which
// stays out while `busy` is set). Signals: safe.
#pragma once

#include "signal/ledger_edges.h"

enum {
    GP_SLICE_LONG_NS = 200000,         // a coroutine's slice from which on the CPU clock (~0.6 us) is read
    GP_SLICE_LONG_ROOT_NS = 50000,     // the same for the thread's own stack: it waits for events there
    GP_SLICE_WINDOW_NS = 50000,        // a switch this long ago at most may still be inside its routine
    GP_SLICE_ROOT_PENDING_NS = 200000, // or as soon as its short slices add up to this: they may hide short waits
    GP_SLICE_OFF_CPU_NS = 20000,       // time off the CPU worth asking the kernel about (~0.4 us)
};

// GP_SLICE_WINDOW_NS in ticks; set by gp_slice_init().
extern uint64_t gp_slice_window_ticks;

// The process was stopped: for how long in all, ns. Nothing ran meanwhile.
extern _Atomic uint64_t gp_slice_stopped_ns;

// The process was stopped for `ns`, up to now. Collector only.
void gp_slice_note_stop(uint64_t ns);

// Once ticks are calibrated and it is known what a hog is, before sampling starts. Signals: not safe.
void gp_slice_init(void);

// Short slices of a thread's own stack may add up to this before the CPU clock is read: GP_SLICE_ROOT_PENDING_NS, or
// more where a budget asks for it. Signals: safe.
void gp_slice_set_root_pending(uint64_t ns);

// Some coroutine's stack may lie within a thread's own, from now on (gp_thread_nested): then slices of the thread's own
// stack are never short. Signals: safe.
void gp_slice_nest(void);

// Start a sampling epoch. Caller holds the sampler's lock. Signals: not safe.
void gp_slice_new_epoch(void);

// Begin this thread's accounts if sampling started since they were last used: the coroutine with `sp` on its stack has
// been running since the thread got its timer (start_cpu_ns).
void gp_slice_begin(gp_thread_t *thread, uintptr_t sp);

// Another coroutine runs than the hint says: a switch that no hook saw.
void gp_slice_correct(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now, uint64_t cpu_ns);

// A coarse point: charge the current coroutine with what the CPU clock says. Returns the time preempted since the
// coarse point before, in the same slice, ns; 0 where it was short.
uint64_t gp_slice_settle(gp_thread_t *thread, uint64_t now, uint64_t cpu_ns);

// Settle at the present moment, from the thread; not once sampling has ended.
void gp_slice_settle_now(gp_thread_t *thread);

// The same, where more than GP_SLICE_LONG_NS are open at `now`: time that may hide a preemption. From the thread.
// Returns the present moment: `now`, or a later one. Cost: ~2 ns; ~1 us where it settles, 3 at most.
uint64_t gp_slice_settle_open(gp_thread_t *thread, uint64_t now);

// For another thread to ask: time of the slice in progress that is not charged yet, ns, and its coroutine.
uint64_t gp_slice_open_ns(gp_thread_t *thread, prof_coro_t **coro);
