// SPDX-License-Identifier: MIT
// Between the profiles and their snapshots.
#pragma once

#include <stdint.h>

#include "collect/sink.h"
#include "greenprof/prof.h"
#include "interface.h"
#include "model/snapshot.h"

// Exact ledger of a profile so far, the present run included. Caller holds the drain lock and has settled its own
// slice.
void gp_profile_ledger(prof_t *profile, gp_ledger_t *ledger);

// prof_stop() in two steps. The first: nothing after it is in the profile. Returns as prof_stop() does. The second, on
// any thread that may wait for the collector.
int gp_profile_cut(prof_t *profile, enum gp_cut from);
void gp_profile_settle(prof_t *profile);

// Is there a stopped profile whose last samples are on their way? Any thread.
bool gp_profiles_are_put_off(void);

// All profiles.
extern const gp_sink_t gp_profile_sink;

// A copy of what a profile has so far; the samples taken before this call are in it. NULL and errno on failure.
gp_snapshot_t *gp_profile_snapshot(prof_t *profile);

// A snapshot of nothing but the locations of late samples, as nodes without connection, and the modules of these and
// earlier ones; NULL when memory is short. Takes the drain lock.
//   since: without so many first ones; see gp_modules_latest().
gp_snapshot_t *gp_profile_latest(uint32_t since);

// Called by prof_start() at its end, no lock held; NULL = nothing is.
extern void (*_Atomic gp_profile_begun)(void);
void gp_profile_snapshot_free(gp_snapshot_t *snapshot); // NULL is accepted

// A forked child's clocks start at zero: what running profiles had so far is noted before and kept. Drain lock held.
void gp_profiles_before_fork(void);
void gp_profiles_in_child(void);

// The calling thread's coroutine leaves the trace and the profiles it was born into, but not profiles it has started.
void gp_profile_detach(prof_coro_t *coro);
