// SPDX-License-Identifier: MIT
// The census: every live coroutine at one moment, with its state and how long it has lasted, its trace and its stack.
//
// Model: the collector's thread takes it, from outside: waiting coroutines are walked from the registers left by their
// switch (src/core/collect/waiting_stack.h), those on a sleeping thread from where it sleeps. A coroutine at work has
// the stack of its thread's latest sample. No thread is stopped; a coroutine that was switched while it was looked at
// is looked at again. The program goes on, so the census of thousands of coroutines is a matter of milliseconds, not of
// one instant: each has its own time. A census is a capture file of its own, with one reader and one symbolizer for
// both; now and then it is written into the session's capture, too, for the coroutines alive at its end.
#pragma once

#include "record/recording.h"

typedef struct gp_census_stand { // where a thread stands while the census is taken, of which outsiders know less
    int tid;
    bool is_fatal; // a fatal signal came in there; else the caller waits, and goes on there
    gp_unwind_regs_t regs;
} gp_census_stand_t;

typedef struct gp_census_seen { // one coroutine
    prof_coro_t *coro;
    uint64_t id, ticks; // when it was looked at
    enum gp_census_state state;
    uint64_t state_ns;   // for so long
    unsigned flags;      // enum gp_census_flag
    gp_thread_t *thread; // with the coroutine on it, or as its own stack; NULL = none
    uint64_t trace[2];
    gp_stack_t stack;      // depth 0 = not known
    uint32_t stack_age_us; // at work: how long before `ticks` it was sampled there; 0 = it is there
} gp_census_seen_t;

typedef void gp_census_visit_t(const gp_census_seen_t *seen, void *argument);

// Look at every live coroutine and thread. Caller holds the drain lock.
//   stand:   of one thread; NULL = of none.
//   between: called after each piece of GP_CORO_PIECE; it may give the lock back and take it again.
void gp_census_each(const gp_census_stand_t *stand, gp_census_visit_t *visit, void (*between)(void *argument),
                    void *argument);

// Take a census into a recording, as number `number`. Caller holds the drain lock; modules are up to date.
//   stand: of one thread; NULL = of none. between: as above.
// Returns how many records there are. Cost: ~2 us a coroutine.
size_t gp_census_take(gp_recording_t *recording, uint32_t number, const gp_census_stand_t *stand,
                      void (*between)(gp_recording_t *recording));
