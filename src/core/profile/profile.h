// SPDX-License-Identifier: MIT
// Between the profiles and their snapshots.
#ifndef GP_PROFILE_PROFILE_H
#define GP_PROFILE_PROFILE_H

#include <stdint.h>

#include "greenprof/prof.h"
#include "signal/thread.h"

// Exact ledger of a profile so far, the present run included. Caller holds the drain lock and has settled its own
// slice.
void gp_profile_ledger(prof_t *profile, gp_ledger_t *ledger);

// A thread has ended: profiles of it keep its CPU time. Drain lock held.
void gp_profiles_thread_over(const gp_thread_t *thread);

// A forked child's clocks start at zero: what running profiles had so far is noted before and kept. Drain lock held.
void gp_profiles_before_fork(void);
void gp_profiles_in_child(void);

// A coroutine that the calling thread runs leaves the profiles that it was born into, but not those that it has
// started; and the trace that it was born with.
void gp_profile_detach(prof_coro_t *coro);

#endif
