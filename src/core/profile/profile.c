// SPDX-License-Identifier: MIT
// prof_start() and what follows it. Lock order: sampler lock -> drain lock -> registry lock.
#include <errno.h>
#include <string.h>
#include <time.h>

#include "collect/collector.h"
#include "collect/cpu_time.h"
#include "collect/cpu_without_sample.h"
#include "collect/open_sleep.h"
#include "collect/sampler.h"
#include "coro/announce.h"
#include "coro/coro_ledger.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/scope.h"
#include "coro/threads.h"
#include "exact/recorder.h"
#include "greenprof/trace.h"
#include "profile/profile.h"
#include "profile/profile_pool.h"
#include "signal/language.h"
#include "signal/slice_switch.h"

static _Atomic unsigned put_off; // stopped profiles with samples that were not waited for

// Is `profile` valid, and the caller in its process? In a child of _Fork() or clone() there is no collector.
static int profile_check(const prof_t *profile)
{
    if (!gp_process_is_open())
        return -ESRCH;
    return gp_profile_is_valid(profile) ? 0 : -EINVAL;
}

static bool profile_is_stopping(prof_t *profile)
{
    return atomic_load_explicit(&profile->state, memory_order_acquire) == GP_PROFILE_STOPPING;
}

static int profile_check_options(const prof_options_t *given, prof_options_t *options)
{
    *options = (prof_options_t)PROF_OPTIONS_INIT;
    if (given == NULL)
        return 0;
    if (given->size < offsetof(prof_options_t, scope))
        return -EINVAL;
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof(*options); i < given->size; i++)
        if (i >= 4096 || bytes[i] != 0)
            return -E2BIG;
    memcpy(options, given, given->size < sizeof(*options) ? given->size : sizeof(*options));
    options->size = sizeof(*options);
    if (options->frequency_hz == 0)
        options->frequency_hz = PROF_FREQUENCY_DEFAULT_HZ;
    if (options->frequency_hz > PROF_FREQUENCY_MAX_HZ || (unsigned)options->scope > PROF_SCOPE_PROCESS ||
        (unsigned)options->clock > PROF_CLOCK_WALL || (unsigned)options->mode > PROF_MODE_EXACT)
        return -EINVAL;
    return 0;
}

// Slices in progress on other threads that lie in `profile`: what is not in their coroutines' accounts yet, at `now`.
static void profile_add_open_slices(const prof_t *profile, uint64_t now, gp_ledger_t *sum)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
        if (thread == gp_thread_self || coro == NULL ||
            atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE ||
            !gp_scope_covers(coro, profile))
            continue;
        sum->cpu_ns += gp_slice_open_ns(thread, &coro);
        sum->blocked_ns += gp_open_sleep_ns(thread, coro, now);
    }
}

static uint64_t profile_thread_clock_ns(const prof_t *profile)
{
    const gp_thread_t *thread = profile->thread;
    if (thread == NULL || thread->index != profile->thread_index)
        return profile->thread_final_ns; // the thread ended; its block may be another's
    uint64_t final_ns = atomic_load_explicit(&thread->cpu.final_ns, memory_order_relaxed);
    return final_ns != 0 ? final_ns : gp_cpu_time_thread(profile->thread_tid);
}

static void profile_request_ledger(const prof_t *profile, uint64_t now, gp_ledger_t *sum)
{
    gp_lock(&gp_registry_lock);
    bool shared = false; // may other threads run in it now?
    for (gp_scope_t *scope = profile->scopes; scope != NULL; scope = scope->next_in_profile) {
        gp_scope_total(scope, now, sum);
        shared |= scope->references > 2 || scope->first_child != NULL || scope->next_in_profile != NULL;
    }
    gp_thread_t *self = gp_thread_self; // NULL: a dump's own thread
    if (shared || self == NULL || profile->owner != atomic_load_explicit(&self->current, memory_order_relaxed))
        profile_add_open_slices(profile, now, sum);
    gp_unlock(&gp_registry_lock);
}

static void profile_thread_ledger(const prof_t *profile, uint64_t now, gp_ledger_t *sum)
{
    uint64_t cpu_ns = profile_thread_clock_ns(profile);
    sum->cpu_ns = cpu_ns > profile->base.cpu_ns ? cpu_ns : profile->base.cpu_ns;
    sum->slice_ns = gp_ticks_to_ns(now);
    sum->blocked_ns = sum->slice_ns - sum->cpu_ns;
}

// Time of the process that no signal could reach. Caller holds the drain lock.
static uint64_t profile_unsampled_ns(const prof_t *profile)
{
    return profile->options.scope == PROF_SCOPE_PROCESS ? gp_cpu_without_sample_ns() : 0;
}

// Running total of a profile's scope. Caller has settled its own slice.
static void profile_scope_ledger(const prof_t *profile, gp_ledger_t *sum)
{
    uint64_t now = gp_ticks();
    *sum = (gp_ledger_t){0};
    switch (profile->options.scope) {
    case PROF_SCOPE_PROCESS:
        gp_coro_total(now, sum);
        // The ledger's own sum is this too, but for slices in progress.
        sum->cpu_ns = gp_cpu_time_process();
        break;
    case PROF_SCOPE_THREAD:
        profile_thread_ledger(profile, now, sum);
        break;
    default:
        profile_request_ledger(profile, now, sum);
    }
}

static int profile_is_over(const struct prof *profile, const prof_coro_t *coro)
{
    (void)coro;
    return atomic_load_explicit(&((prof_t *)(uintptr_t)profile)->state, memory_order_relaxed) != GP_PROFILE_RUNNING;
}

// Let the calling coroutine belong to a request profile from now on.
static int profile_enter_scope(prof_t *profile, prof_coro_t *coro)
{
    int error = 0;
    gp_lock(&gp_registry_lock);
    gp_scope_pop(coro, profile_is_over);
    if (!gp_scope_covers(coro, profile)) {
        gp_scope_t *scope = gp_scope_push(coro, profile, profile->exact);
        if (scope != NULL) {
            scope->next_in_profile = profile->scopes;
            profile->scopes = scope;
        } else {
            error = -ENOMEM;
        }
    }
    profile->owner = coro;
    profile->owner_id = coro->id;
    gp_unlock(&gp_registry_lock);
    return error;
}

static void profile_leave_scope(prof_t *profile, prof_coro_t *caller)
{
    gp_lock(&gp_registry_lock);
    if (caller != NULL)
        gp_scope_pop(caller, profile_is_over);
    if (profile->owner != NULL && profile->owner != caller && profile->owner->id == profile->owner_id)
        gp_scope_pop(profile->owner, profile_is_over);
    gp_unlock(&gp_registry_lock);
}

static int profile_is_inherited(const struct prof *profile, const prof_coro_t *coro)
{
    return profile->owner != coro || profile->owner_id != coro->id;
}

void gp_profile_detach(prof_coro_t *coro)
{
    if (gp_thread_self != NULL && atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_relaxed) != NULL) {
        gp_slice_settle_now(gp_thread_self);
        gp_lock(&gp_registry_lock);
        gp_scope_pop(coro, profile_is_inherited);
        gp_unlock(&gp_registry_lock);
        gp_exact_scopes_changed();
    }
    uint64_t trace[2] = {atomic_load_explicit(&gp_coro_context(coro)->trace[0], memory_order_relaxed),
                         atomic_load_explicit(&gp_coro_context(coro)->trace[1], memory_order_relaxed)};
    if ((trace[0] | trace[1]) != 0 && trace[0] == gp_coro_context(coro)->birth_trace[0] &&
        trace[1] == gp_coro_context(coro)->birth_trace[1])
        prof_trace_clear();
}

// A request does not wait for the samples that are on their way: a read or resume of its profile does.
static bool profile_may_put_off(const prof_t *profile)
{
    return profile->options.scope == PROF_SCOPE_REQUEST && profile->exact == NULL;
}

// Before a ledger is read: the caller's slice up to now; for the process, threads that bypassed pthread_create() are
// attached. A request of a coroutine begins and ends as a switch to it, and from it, would.
//   coro: the caller's; NULL = it is to be found.
static void profile_settle(const prof_t *profile, gp_thread_t *thread, prof_coro_t *coro)
{
    if (coro != NULL && profile_may_put_off(profile))
        gp_slice_settle_as_switch(thread, coro);
    else
        gp_slice_settle_now(thread);
    if (profile->options.scope == PROF_SCOPE_PROCESS)
        gp_sampler_look_for_threads();
}

// Begin a run on the calling coroutine; the sampler is acquired. Caller holds the drain lock.
static int profile_begin_run(prof_t *profile, gp_thread_t *thread, prof_coro_t *coro)
{
    int stopped = GP_PROFILE_STOPPED;
    // Running before its scope is entered: otherwise it would count as over and be popped at once.
    if (!atomic_compare_exchange_strong_explicit(&profile->state, &stopped, GP_PROFILE_RUNNING, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return -EALREADY; // another thread was faster
    if (profile->options.scope == PROF_SCOPE_REQUEST) {
        int error = profile_enter_scope(profile, coro);
        if (error != 0) {
            atomic_store_explicit(&profile->state, GP_PROFILE_STOPPED, memory_order_release);
            return error;
        }
    } else if (profile->thread_index == 0) {
        profile->thread = thread;
        profile->thread_index = thread->index;
        profile->thread_tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    }
    profile->start_ticks = gp_ticks();
    profile->base = (gp_ledger_t){0};
    profile_scope_ledger(profile, &profile->base);
    profile->base_unsampled_ns = profile_unsampled_ns(profile);
    profile->base.longest_ns = 0;
    if (profile->options.scope != PROF_SCOPE_REQUEST)
        gp_profile_list(profile);
    if (profile->options.clock == PROF_CLOCK_WALL)
        gp_profiles_count_wall(1);
    if (profile->exact != NULL)
        gp_exact_start(profile->exact, profile->thread_index);
    return 0;
}

// Exact mode needs samples for the accounts only.
static unsigned profile_frequency_of(const prof_t *profile)
{
    enum { EXACT_HZ = 10 };
    return profile->exact != NULL ? EXACT_HZ : profile->options.frequency_hz;
}

static int profile_start_uncancelled(prof_t *profile)
{
    int error = gp_sampler_acquire(profile_frequency_of(profile));
    if (error != 0)
        return error;
    gp_thread_t *thread = gp_thread_attach();
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    if (language != NULL)
        language->enter();
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    error = -ENOMEM;
    if (thread != NULL && coro != NULL) {
        profile_settle(profile, thread, coro);
        gp_drain_enter();
        error = profile_begin_run(profile, thread, coro);
        if (error == 0) // else another thread has begun it
            atomic_store_explicit(&profile->has_sampler, true, memory_order_relaxed);
        gp_drain_leave();
    }
    if (error != 0)
        gp_sampler_release(profile_frequency_of(profile));
    else if (profile->exact != NULL && language != NULL)
        language->count_calls(profile->options.scope == PROF_SCOPE_PROCESS);
    return error;
}

// A thread that is cancelled while it holds our locks would take them along.
static int profile_start_run(prof_t *profile)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int error = profile_start_uncancelled(profile);
    pthread_setcancelstate(cancel, NULL);
    return error;
}

void (*_Atomic gp_profile_begun)(void);

// Without a system call, which gp_clock_ns() makes for this clock.
static uint64_t profile_realtime_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

prof_t *prof_start(const prof_options_t *given)
{
    prof_options_t options;
    int saved_errno = errno; // looking for threads and files that are not there is no failure
    int error = gp_process_is_open() ? profile_check_options(given, &options) : -ESRCH;
    prof_t *profile = NULL;
    if (error == 0) {
        gp_drain_enter();
        profile = gp_profile_new();
        if (profile != NULL)
            atomic_store_explicit(&profile->state, GP_PROFILE_STOPPED, memory_order_release);
        gp_drain_leave();
        error = profile != NULL ? 0 : -ENOMEM;
    }
    if (error == 0) {
        const char *name = options.name != NULL ? options.name : "profile";
        memcpy(profile->name, name, strnlen(name, sizeof(profile->name) - 1));
        options.name = NULL;
        profile->options = options;
        profile->start_realtime_ns = profile_realtime_ns();
        if (options.mode == PROF_MODE_EXACT && (profile->exact = gp_exact_new(options.scope)) == NULL)
            error = -ENOMEM;
        else
            error = profile_start_run(profile);
    }
    if (error == 0) {
        // Acquire: partner of the release in set_begun().
        void (*begun)(void) = atomic_load_explicit(&gp_profile_begun, memory_order_acquire);
        if (begun != NULL)
            begun();
        errno = saved_errno;
        return profile;
    }
    prof_free(profile);
    errno = -error;
    return NULL;
}

int prof_resume(prof_t *profile)
{
    int error = profile_check(profile);
    if (error != 0)
        return error;
    if (profile_is_stopping(profile))
        gp_profile_settle(profile);
    if (atomic_load_explicit(&profile->state, memory_order_acquire) != GP_PROFILE_STOPPED)
        return -EALREADY;
    int saved_errno = errno;
    error = profile_start_run(profile);
    errno = saved_errno;
    return error;
}

// The ledger of the present run. A thread that comes within reach during it is sampled with its time before: this makes
// no time of the run.
static void profile_running_ledger(prof_t *profile, gp_ledger_t *ledger)
{
    profile_scope_ledger(profile, ledger);
    gp_ledger_subtract(ledger, &profile->base);
    uint64_t left_out_ns = profile_unsampled_ns(profile);
    if (left_out_ns > profile->base_unsampled_ns)
        ledger->cpu_ns -= left_out_ns - profile->base_unsampled_ns;
    if ((int64_t)ledger->cpu_ns < 0)
        ledger->cpu_ns = 0;
}

void gp_profile_ledger(prof_t *profile, gp_ledger_t *ledger)
{
    *ledger = (gp_ledger_t){0};
    if (atomic_load_explicit(&profile->state, memory_order_acquire) == GP_PROFILE_RUNNING)
        profile_running_ledger(profile, ledger);
    gp_ledger_add(ledger, &profile->total);
}

static void profile_end_run(prof_t *profile)
{
    gp_ledger_t run;
    profile_running_ledger(profile, &run);
    gp_ledger_add(&profile->total, &run);
    profile->duration_ns += gp_ticks_to_ns(profile->stop_ticks - profile->start_ticks);
}

static const gp_thread_t *ended_thread; // argument of profile_note_thread_over(); drain lock held

static void profile_note_thread_over(prof_t *profile)
{
    if (profile->options.scope != PROF_SCOPE_THREAD || profile->thread != ended_thread ||
        profile->thread_index != ended_thread->index)
        return;
    profile->thread_final_ns = atomic_load_explicit(&ended_thread->cpu.final_ns, memory_order_relaxed);
    profile->thread = NULL;
}

// Profiles of a thread that has ended keep its CPU time.
static void profile_thread_over(gp_thread_t *thread)
{
    ended_thread = thread;
    gp_profiles_each_broad(profile_note_thread_over);
}

const gp_sink_t gp_profile_sink = {
    .wants_waits = gp_profiles_want_waits,
    .wants_threads = gp_profiles_want_waits,
    .sample = gp_profiles_take,
    .thread_over = profile_thread_over,
};

static void profile_note_so_far(prof_t *profile)
{
    profile_running_ledger(profile, &profile->before_fork);
}

static void profile_keep_in_child(prof_t *profile)
{
    gp_ledger_add(&profile->total, &profile->before_fork);
    gp_ledger_add(&profile->base, &profile->before_fork);
    profile->base.cpu_ns = profile->base_unsampled_ns = 0; // that clock starts anew in a child
    if (profile->thread == gp_thread_self)
        profile->thread_tid = gp_thread_self != NULL ? (int)gp_thread_self->tid : 0;
}

void gp_profiles_before_fork(void)
{
    gp_profiles_each_broad(profile_note_so_far);
}

void gp_profiles_in_child(void)
{
    gp_profiles_each_broad(profile_keep_in_child);
}

// caller: NULL = none of the program's coroutines. Caller holds the drain lock.
static int profile_cut_locked(prof_t *profile, prof_coro_t *caller)
{
    int expected = GP_PROFILE_RUNNING;
    uint64_t stop_ticks = gp_ticks();
    if (!atomic_compare_exchange_strong_explicit(&profile->state, &expected, GP_PROFILE_STOPPING, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return -EALREADY;
    profile->stop_ticks = stop_ticks;
    profile->is_put_off = profile_may_put_off(profile);
    atomic_fetch_add_explicit(&put_off, profile->is_put_off, memory_order_relaxed);
    if (profile->options.clock == PROF_CLOCK_WALL)
        gp_profiles_count_wall(-1);
    profile_end_run(profile);
    profile_leave_scope(profile, caller);
    return 0;
}

static int profile_cut_here(prof_t *profile)
{
    gp_thread_t *thread = gp_thread_attach();
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (thread == NULL || coro == NULL)
        return -ENOMEM;
    profile_settle(profile, thread, coro);
    gp_drain_enter();
    int error = profile_cut_locked(profile, coro);
    gp_drain_leave();
    return error;
}

static int profile_cut_outside(prof_t *profile)
{
    gp_drain_enter();
    int error = profile_cut_locked(profile, NULL);
    gp_drain_leave();
    return error;
}

int gp_profile_cut(prof_t *profile, enum gp_cut from)
{
    int saved_errno = errno, error = profile_check(profile);
    if (error == 0 && atomic_load_explicit(&profile->state, memory_order_acquire) != GP_PROFILE_RUNNING)
        error = -EALREADY;
    if (error == 0)
        error = from == GP_CUT_HERE      ? profile_cut_here(profile)
                : from == GP_CUT_OUTSIDE ? profile_cut_outside(profile)
                                         : profile_cut_locked(profile, NULL);
    if (error == 0 && profile->exact != NULL && from != GP_CUT_COLLECTOR) // its own profiles are of samples
        gp_exact_stop(profile->exact);
    errno = saved_errno;
    return error;
}

static void profile_release_sampler(prof_t *profile)
{
    if (atomic_exchange_explicit(&profile->has_sampler, false, memory_order_relaxed))
        gp_sampler_release(profile_frequency_of(profile));
}

bool gp_profiles_are_put_off(void)
{
    return atomic_load_explicit(&put_off, memory_order_relaxed) > 0;
}

static void profile_settle_locked(prof_t *profile)
{
    if (profile->options.scope != PROF_SCOPE_REQUEST)
        gp_profile_unlist(profile);
    if (profile->is_put_off)
        atomic_fetch_sub_explicit(&put_off, 1, memory_order_relaxed);
    profile->is_put_off = false;
    atomic_store_explicit(&profile->state, GP_PROFILE_STOPPED, memory_order_release);
}

void gp_profile_settle(prof_t *profile)
{
    int saved_errno = errno;
    bool has_sampler = false;
    if (profile_is_stopping(profile))
        gp_collector_sync();
    gp_drain_enter();
    if (profile_is_stopping(profile)) { // else another thread has done so, and may have resumed it
        profile_settle_locked(profile);
        has_sampler = atomic_exchange_explicit(&profile->has_sampler, false, memory_order_relaxed);
    }
    gp_drain_leave();
    if (has_sampler)
        gp_sampler_release(profile_frequency_of(profile));
    errno = saved_errno;
}

int prof_stop(prof_t *profile)
{
    int error = gp_profile_cut(profile, GP_CUT_HERE);
    if (error == 0 && profile_may_put_off(profile))
        profile_release_sampler(profile);
    else if (error == 0)
        gp_profile_settle(profile);
    return error;
}

static void profile_read_ledger(prof_t *profile, gp_ledger_t *ledger)
{
    bool running = atomic_load_explicit(&profile->state, memory_order_acquire) == GP_PROFILE_RUNNING;
    if (running && gp_thread_attach() != NULL)
        profile_settle(profile, gp_thread_self, NULL);
    gp_drain_enter();
    gp_profile_ledger(profile, ledger);
    gp_drain_leave();
}

uint64_t prof_total_ns(prof_t *profile)
{
    gp_ledger_t ledger;
    if (profile_check(profile) != 0)
        return 0;
    profile_read_ledger(profile, &ledger);
    gp_drain_enter();
    uint64_t counted_ns = profile->exact != NULL ? gp_exact_language_ns(profile->exact) : 0;
    gp_drain_leave();
    return counted_ns != 0 ? counted_ns : ledger.cpu_ns;
}

int prof_ledger(prof_t *profile, prof_ledger_t *out)
{
    gp_ledger_t ledger;
    int error = profile_check(profile);
    if (error != 0)
        return error;
    profile_read_ledger(profile, &ledger);
    return gp_ledger_give(&ledger, out);
}

static void profile_forget_scopes(prof_t *profile)
{
    gp_lock(&gp_registry_lock);
    while (profile->scopes != NULL) {
        gp_scope_t *scope = profile->scopes;
        profile->scopes = scope->next_in_profile;
        gp_scope_forget_profile(scope);
    }
    gp_unlock(&gp_registry_lock);
}

void prof_free(prof_t *profile)
{
    if (profile_check(profile) != 0)
        return;
    if (atomic_load_explicit(&profile->state, memory_order_acquire) == GP_PROFILE_RUNNING)
        prof_stop(profile);
    profile_release_sampler(profile);
    gp_drain_enter();
    if (profile_is_stopping(profile)) // samples that are on their way find no profile
        profile_settle_locked(profile);
    profile_forget_scopes(profile);
    gp_exact_free(profile->exact);
    profile->exact = NULL;
    gp_call_tree_free(&profile->tree);
    gp_profile_recycle(profile);
    gp_drain_leave();
}
