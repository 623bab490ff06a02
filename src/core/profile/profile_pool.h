// SPDX-License-Identifier: MIT
// The profiles of this process: their records, which are reused but never unmapped, and the lists of running ones.
// Guarded by the drain lock, except where said.
#pragma once

#include <stdbool.h>

#include "collect/sink.h"
#include "greenprof/prof.h"
#include "profile/call_tree.h"
#include "signal/scope_record.h"

enum gp_profile_state {
    GP_PROFILE_FREE,
    GP_PROFILE_RUNNING,
    GP_PROFILE_STOPPING, // samples from before stop_ticks still come in
    GP_PROFILE_STOPPED,
};

struct prof {
    _Atomic int state;        // enum gp_profile_state
    _Atomic bool has_sampler; // what it acquired is to be released
    bool is_put_off;          // stopped, but not settled
    prof_options_t options;
    char name[64];

    uint64_t start_ticks, stop_ticks; // of the present or last run
    uint64_t start_realtime_ns;
    uint64_t duration_ns;       // of earlier runs
    gp_ledger_t total;          // exact, of earlier runs
    gp_ledger_t before_fork;    // of the present run, when the process was last forked
    gp_ledger_t base;           // running total of the scope when the present run began
    uint64_t base_unsampled_ns; // of the process, in no total then

    gp_scope_t *scopes; // PROF_SCOPE_REQUEST; under the registry's lock
    prof_coro_t *owner; // coroutine of the last start or resume
    uint64_t owner_id;
    uint32_t thread_index; // PROF_SCOPE_THREAD
    int thread_tid;
    gp_thread_t *thread;      // NULL once it has ended
    uint64_t thread_final_ns; // its CPU clock then

    struct gp_exact *exact; // PROF_MODE_EXACT; NULL otherwise
    gp_call_tree_t tree;
    uint64_t samples, sampled_ns;

    struct prof *next_broad, *prev_broad; // running profiles of thread or process scope
    struct prof *next_free;
};

// A blank record, or NULL.
prof_t *gp_profile_new(void);
void gp_profile_recycle(prof_t *profile);

// Does `profile` point to a record in use? Any pointer is accepted; no lock needed.
bool gp_profile_is_valid(const prof_t *profile);

// Put on or off the list of broad profiles.
void gp_profile_list(prof_t *profile);
void gp_profile_unlist(prof_t *profile);

// Call `visit` for every running profile of thread or process scope.
void gp_profiles_each_broad(void (*visit)(prof_t *profile));

// Does a running profile look at the wall clock? Any thread, no lock needed.
bool gp_profiles_want_waits(void);
void gp_profiles_count_wall(int change); // wall-clock profiles more or less

// Hand a sample to all profiles with it in their scope; see gp_sink_t.
void gp_profiles_take(const gp_sample_t *sample, gp_thread_t *thread, const gp_stack_t *stack, const gp_share_t *shares,
                      size_t count);
