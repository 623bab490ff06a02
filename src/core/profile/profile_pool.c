// SPDX-License-Identifier: MIT
#include "profile/profile_pool.h"

#include <stdlib.h>
#include <string.h>

#include "coro/scope.h"
#include "signal/ticks.h"
#include "signal/wait_samples.h"

enum { FIRST_PROFILES = 128 };

// Each has twice as many as the one before: any number of profiles is in a few of them.
typedef struct chunk {
    struct chunk *next;
    size_t count;
    prof_t profiles[];
} chunk_t;

static _Atomic(chunk_t *) chunks; // append-only, the last one first
static _Atomic int wall_profiles;
static prof_t *free_profiles;
static size_t fresh;  // of the last chunk's profiles, at its end, that were never used: their memory is not touched
static prof_t *broad; // running profiles of thread or process scope

static chunk_t *profile_pool_new_chunk(size_t count)
{
    // Allocated, not mapped: LeakSanitizer finds the trees that profiles refer to.
    chunk_t *chunk = calloc(1, sizeof(*chunk) + count * sizeof(prof_t));
    if (chunk != NULL)
        chunk->count = count;
    return chunk;
}

static bool profile_pool_grow(void)
{
    chunk_t *last = atomic_load_explicit(&chunks, memory_order_relaxed);
    chunk_t *chunk = last != NULL ? profile_pool_new_chunk(2 * last->count) : NULL;
    if (chunk == NULL && (chunk = profile_pool_new_chunk(FIRST_PROFILES)) == NULL)
        return false;
    fresh = chunk->count;
    chunk->next = last;
    // Release: partner of the acquire in gp_profile_is_valid().
    atomic_store_explicit(&chunks, chunk, memory_order_release);
    return true;
}

prof_t *gp_profile_new(void)
{
    prof_t *profile = free_profiles;
    if (profile != NULL) {
        free_profiles = profile->next_free;
        memset((void *)profile, 0, sizeof(*profile));
        return profile;
    }
    if (fresh == 0 && !profile_pool_grow())
        return NULL;
    chunk_t *last = atomic_load_explicit(&chunks, memory_order_relaxed);
    return &last->profiles[last->count - fresh--];
}

void gp_profile_recycle(prof_t *profile)
{
    atomic_store_explicit(&profile->state, GP_PROFILE_FREE, memory_order_release);
    profile->next_free = free_profiles;
    free_profiles = profile;
}

bool gp_profile_is_valid(const prof_t *profile)
{
    uintptr_t address = (uintptr_t)profile;
    // Acquire: partner of the release in profile_pool_grow().
    for (chunk_t *chunk = atomic_load_explicit(&chunks, memory_order_acquire); chunk != NULL; chunk = chunk->next) {
        uintptr_t first = (uintptr_t)&chunk->profiles[0], end = (uintptr_t)&chunk->profiles[chunk->count];
        if (address >= first && address < end)
            return (address - first) % sizeof(prof_t) == 0 &&
                   atomic_load_explicit(&((prof_t *)address)->state, memory_order_acquire) != GP_PROFILE_FREE;
    }
    return false;
}

bool gp_profiles_want_waits(void)
{
    return atomic_load_explicit(&wall_profiles, memory_order_relaxed) > 0;
}

void gp_profiles_count_wall(int change)
{
    atomic_fetch_add_explicit(&wall_profiles, change, memory_order_relaxed);
    gp_wait_samples_want(change);
}

void gp_profile_list(prof_t *profile)
{
    profile->prev_broad = NULL;
    profile->next_broad = broad;
    if (broad != NULL)
        broad->prev_broad = profile;
    broad = profile;
}

void gp_profile_unlist(prof_t *profile)
{
    if (profile->prev_broad != NULL)
        profile->prev_broad->next_broad = profile->next_broad;
    else if (broad == profile)
        broad = profile->next_broad;
    if (profile->next_broad != NULL)
        profile->next_broad->prev_broad = profile->prev_broad;
    profile->next_broad = profile->prev_broad = NULL;
}

void gp_profiles_each_broad(void (*visit)(prof_t *profile))
{
    for (prof_t *profile = broad; profile != NULL; profile = profile->next_broad)
        visit(profile);
}

static bool profile_pool_is_wait(enum gp_sample_kind kind)
{
    return kind == GP_KIND_PARKED || kind == GP_KIND_READY || kind == GP_KIND_WAITING;
}

// A wait may have begun before the profile did: what of it lies within.
static uint64_t profile_pool_within(const prof_t *profile, const gp_sample_t *sample, uint64_t weight_ns)
{
    if (sample->slice >= profile->start_ticks || sample->ticks <= sample->slice)
        return weight_ns;
    uint64_t inside = sample->ticks - profile->start_ticks, all = sample->ticks - sample->slice;
    return (uint64_t)((unsigned __int128)weight_ns * inside / all);
}

// So may a sleep: it stands for the time just before it was seen.
static uint64_t profile_pool_asleep_within(const prof_t *profile, const gp_sample_t *sample, uint64_t weight_ns)
{
    uint64_t inside = gp_ticks_to_ns(sample->ticks - profile->start_ticks);
    return weight_ns < inside ? weight_ns : inside;
}

static int profile_pool_add(prof_t *profile, const gp_stack_t *stack, enum gp_sample_kind kind, uint64_t weight_ns)
{
    static gp_loc_t locs[GP_UNWIND_DEPTH_DEFAULT + 3]; // guarded by the drain lock
    if (kind == GP_KIND_CPU || (stack->depth > 0 && gp_kind_is_told(stack->locs[0])))
        return gp_call_tree_add(&profile->tree, stack->locs, stack->depth, weight_ns);
    locs[0] = GP_LOC(GP_MODULE_PSEUDO, gp_kind_leaf(kind));
    memcpy(locs + 1, stack->locs, stack->depth * sizeof(*locs));
    return gp_call_tree_add(&profile->tree, locs, stack->depth + 1, weight_ns);
}

static void profile_pool_take_share(prof_t *profile, const gp_sample_t *sample, const gp_stack_t *stack,
                                    gp_share_t share)
{
    if (share.kind != GP_KIND_CPU && profile->options.clock != PROF_CLOCK_WALL)
        return;
    if (profile_pool_is_wait(share.kind))
        share.weight_ns = profile_pool_within(profile, sample, share.weight_ns);
    if (share.kind == GP_KIND_BLOCKED || share.kind == GP_KIND_LOCK)
        share.weight_ns = profile_pool_asleep_within(profile, sample, share.weight_ns);
    if (profile_pool_add(profile, stack, share.kind, share.weight_ns) != 0 || share.kind != GP_KIND_CPU)
        return;
    profile->samples++;
    profile->sampled_ns += share.weight_ns;
}

static bool profile_pool_is_in_time(const prof_t *profile, const gp_sample_t *sample)
{
    int state = atomic_load_explicit(&profile->state, memory_order_relaxed);
    return sample->ticks >= profile->start_ticks &&
           (state == GP_PROFILE_RUNNING || (state == GP_PROFILE_STOPPING && sample->ticks <= profile->stop_ticks));
}

static void profile_pool_take(prof_t *profile, const gp_sample_t *sample, const gp_stack_t *stack,
                              const gp_share_t *shares, size_t count)
{
    if (profile_pool_is_in_time(profile, sample))
        for (size_t i = 0; i < count; i++)
            profile_pool_take_share(profile, sample, stack, shares[i]);
}

// Does a profile of thread or process scope cover a part of a sample? A thread does not wait: its coroutines do,
// wherever they are resumed. All parts of one sample are waits, or none is.
static bool profile_pool_is_covered(const prof_t *profile, const gp_thread_t *thread, const gp_share_t *shares)
{
    bool is_mine = thread != NULL && profile->thread_index == thread->index && !profile_pool_is_wait(shares[0].kind);
    return profile->options.scope == PROF_SCOPE_PROCESS || is_mine;
}

void gp_profiles_take(const gp_sample_t *sample, gp_thread_t *thread, const gp_stack_t *stack, const gp_share_t *shares,
                      size_t count)
{
    // The scopes from the sample's up to the root. No lock is needed: the drain lock keeps their profiles, and their
    // slots are not reused before the rings that name them were emptied.
    gp_scope_t *scope = sample->scope != 0 ? gp_scope_at(sample->scope) : NULL;
    for (; scope != NULL; scope = gp_scope_parent(scope)) {
        prof_t *profile = gp_scope_profile(scope);
        if (profile != NULL)
            profile_pool_take(profile, sample, stack, shares, count);
    }
    for (prof_t *profile = broad; profile != NULL; profile = profile->next_broad)
        if (profile_pool_is_covered(profile, thread, shares))
            profile_pool_take(profile, sample, stack, shares, count);
}
