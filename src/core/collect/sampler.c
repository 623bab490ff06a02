// SPDX-License-Identifier: MIT
#include "collect/sampler.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/children_unprofiled.h"
#include "collect/collector.h"
#include "collect/cost.h"
#include "collect/cpu_time.h"
#include "collect/pacer.h"
#include "collect/sampling_signal.h"
#include "collect/shield.h"
#include "collect/thread_timers.h"
#include "coro/hook_returns.h"
#include "coro/otel_thread_context.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/switch.h"
#include "coro/task.h"
#include "coro/threads.h"
#include "greenprof/coro.h"
#include "settings.h"
#include "signal/handler.h"
#include "signal/hog.h"
#include "signal/ledger_edges.h"
#include "signal/rest.h"
#include "signal/slice.h"
#include "signal/wait_samples.h"
#include "unwind/unwind.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t users[PROF_FREQUENCY_MAX_HZ + 1]; // by frequency
static unsigned most_wanted;                      // no user wants more; guarded by the lock, as all of these
static unsigned user_count;
static unsigned patient_count;                 // users that let sampling rest
static unsigned limit = PROF_FREQUENCY_MAX_HZ; // what the budget leaves
static uint64_t idle_since_ns;
static bool leave_children; // forked children are not sampled

void gp_sampler_enter(void)
{
    gp_process_let_forks_by();
    gp_lock(&lock);
}

void gp_sampler_leave(void)
{
    gp_unlock(&lock);
}

bool gp_sampler_enter_until(const struct timespec *until)
{
    return gp_lock_until(&lock, until);
}

static int sampler_start_locked(gp_thread_t *self, unsigned hz)
{
    int error = gp_unwind_init();
    if (error == 0)
        error = gp_sampling_signal_take(0);
    if (error == 0)
        error = gp_collector_start();
    if (error != 0)
        return error;
    gp_ticks_init();
    gp_cost_begin();
    gp_hog_set_threshold((uint64_t)(gp_setting_number(GP_SETTING_HOG_MS) * 1e6));
    gp_slice_init();
    gp_wait_samples_set_frequency(hz);
    gp_handler_kick = gp_collector_kick;
    gp_clock_pacer = &gp_pacer;
    gp_slice_new_epoch();
    error = gp_timers_start(self, hz);
    if (error != 0)
        return error;
    // Release: partner of the acquire in handle().
    atomic_store_explicit(&gp_handler_sampling, true, memory_order_release);
    gp_otel_thread_resume();
    gp_coro_set_draining(NULL); // again: the collector may just have found that nothing samples
    gp_timers_give_all();
    gp_cpu_time_stand_at(0);
    if (gp_ticks_scale.counter)
        atomic_fetch_and_explicit(&gp_switch_special, ~(uint32_t)GP_SWITCH_RESTS, memory_order_relaxed);
    __atomic_store_n(&prof_coro_active, 1, __ATOMIC_RELEASE);
    gp_hook_returns_hook(true);
    return 0;
}

static void sampler_stop_locked(void)
{
    __atomic_store_n(&prof_coro_active, 0, __ATOMIC_RELEASE);
    gp_hook_returns_hook(false);
    atomic_fetch_or_explicit(&gp_switch_special, GP_SWITCH_RESTS, memory_order_relaxed);
    atomic_store_explicit(&gp_handler_sampling, false, memory_order_release);
    gp_ledger_edge_end_epoch(gp_ticks());
    gp_otel_thread_pause();
    gp_timers_stop();
}

static void sampler_yield_locked(int host)
{
    bool moved = gp_sampling_signal_take(host) == 0;
    if (gp_timers_frequency() != 0 && moved) {
        gp_timers_renew();
    } else if (gp_timers_frequency() != 0) {
        uint64_t now = gp_cpu_time_process();
        sampler_stop_locked();
        gp_cpu_time_stand_at(now);
    }
}

void gp_sampler_yield(void)
{
    gp_sampler_enter();
    int host = gp_sampling_signal();
    sampler_yield_locked(host);
    gp_sampling_signal_take_off(host);
    gp_sampler_leave();
}

void gp_sampler_look_at_signal(void)
{
    gp_sampler_enter();
    if (gp_timers_frequency() != 0 && !gp_sampling_signal_is_ours())
        sampler_yield_locked(gp_sampling_signal());
    gp_sampler_leave();
    gp_shield_look();
}

bool gp_sampler_has_yielded(void)
{
    return gp_cpu_time_stands();
}

static unsigned sampler_limited(unsigned hz)
{
    return hz < limit ? hz : limit;
}

static void sampler_change_frequency(unsigned hz, bool at_once)
{
    if (hz == gp_timers_frequency() || hz == 0)
        return;
    gp_wait_samples_set_frequency(hz);
    gp_timers_change(hz, at_once);
}

static unsigned sampler_highest_wanted(void)
{
    while (most_wanted > 0 && users[most_wanted] == 0)
        most_wanted--;
    return most_wanted;
}

static void sampler_add_users(unsigned hz, unsigned count)
{
    users[hz] += count;
    if (count > 0 && hz > most_wanted)
        most_wanted = hz;
}

// A thread of the program's, for callers on a thread of greenprof's own: the main one, if it lives.
static gp_thread_t *sampler_find_one_of_program(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire), *found = NULL;
    for (; thread != NULL; thread = thread->next) {
        pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
        if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE)
            continue;
        if (found == NULL || tid == getpid())
            found = thread;
    }
    return found;
}

static void sampler_prepare_task(pid_t tid, void *unused)
{
    (void)unused;
    gp_thread_prepare(tid, gp_thread_may_be_own);
}

// Before the lock: a still unknown thread is announced to arm_if_sampling(). In a process that was attached to, none of
// the program's may have called in yet.
static gp_thread_t *sampler_find_self(void)
{
    gp_thread_t *self = gp_thread_attach();
    if (self != NULL || !gp_thread_is_own((pid_t)syscall(SYS_gettid)))
        return self;
    self = sampler_find_one_of_program();
    if (self == NULL && gp_task_each(sampler_prepare_task, NULL) == 0)
        self = sampler_find_one_of_program();
    return self;
}

static void sampler_end_rest(void)
{
    if (!gp_rest_is_now())
        return;
    gp_rest_end(gp_cpu_time_process());
    gp_collector_kick(); // it waits for no end of a rest that is over, or else for good
}

int gp_sampler_acquire(unsigned hz)
{
    int error = 0;
    gp_thread_t *self = sampler_find_self();
    if (self == NULL)
        return -ENOMEM;
    gp_sampler_enter();
    gp_children_unprofiled_begin();
    if (gp_timers_frequency() == 0)
        error =
            sampler_start_locked(self, sampler_limited(hz > sampler_highest_wanted() ? hz : sampler_highest_wanted()));
    if (error == 0)
        sampler_end_rest();
    if (error == 0 && (sampler_limited(hz) > gp_timers_frequency() || user_count == 0))
        sampler_change_frequency(sampler_limited(hz), true);
    if (error == 0) {
        sampler_add_users(hz, 1);
        user_count++;
    }
    gp_sampler_leave();
    return error;
}

void gp_sampler_release(unsigned hz)
{
    gp_sampler_enter();
    users[hz]--;
    user_count--;
    if (user_count == 0)
        sampler_end_rest(); // for good
    if (user_count == 0)
        idle_since_ns = gp_clock_ns(CLOCK_MONOTONIC);
    else if (hz >= gp_timers_frequency() && users[hz] == 0)
        sampler_change_frequency(sampler_limited(sampler_highest_wanted()), true);
    gp_sampler_leave();
}

int gp_sampler_acquire_patiently(unsigned hz)
{
    gp_sampler_enter();
    bool rests = gp_rest_is_now();
    sampler_add_users(hz, rests);
    user_count += rests;
    patient_count += rests;
    gp_sampler_leave();
    int error = rests ? 0 : gp_sampler_acquire(hz);
    if (rests || error != 0)
        return error;
    gp_sampler_enter();
    patient_count++;
    gp_sampler_leave();
    return 0;
}

void gp_sampler_release_patiently(unsigned hz)
{
    gp_sampler_enter();
    patient_count--;
    gp_sampler_leave();
    gp_sampler_release(hz);
}

static bool sampler_may_rest(void)
{
    return gp_timers_frequency() != 0 && user_count > 0 && patient_count == user_count;
}

bool gp_sampler_may_rest(void)
{
    gp_sampler_enter();
    bool may = sampler_may_rest();
    gp_sampler_leave();
    return may;
}

bool gp_sampler_rest(void)
{
    gp_sampler_enter();
    bool may = sampler_may_rest();
    if (may) { // first: what happens from here on is told to the collector all the same
        gp_rest_begin(gp_cpu_time_process());
        sampler_stop_locked();
        gp_collector_kick(); // what is in the rings names modules, which may go from here on
    }
    gp_sampler_leave();
    return may;
}

int gp_sampler_resume(void)
{
    gp_thread_t *self = sampler_find_self();
    if (self == NULL)
        return -EAGAIN;
    gp_sampler_enter();
    bool rests = gp_rest_is_now();
    int error = rests ? sampler_start_locked(self, sampler_limited(sampler_highest_wanted())) : 0;
    if (error != 0) // the host has taken the signal meanwhile: as gp_sampler_yield()
        gp_cpu_time_stand_at(gp_cpu_time_process());
    sampler_end_rest();
    gp_sampler_leave();
    return error;
}

void gp_sampler_change_wish(_Atomic unsigned *wish, unsigned to)
{
    unsigned from = atomic_load_explicit(wish, memory_order_relaxed);
    gp_sampler_enter(); // a fork sees both changes, or none
    bool goes_on = from != 0 &&
                   atomic_compare_exchange_strong_explicit(wish, &from, to, memory_order_relaxed, memory_order_relaxed);
    users[from] -= goes_on;
    sampler_add_users(to, goes_on);
    if (goes_on && gp_timers_frequency() != 0)
        sampler_change_frequency(sampler_limited(sampler_highest_wanted()), false);
    gp_sampler_leave();
}

void gp_sampler_limit(unsigned hz)
{
    gp_sampler_enter();
    limit = hz;
    if (gp_timers_frequency() != 0 && user_count > 0)
        sampler_change_frequency(sampler_limited(sampler_highest_wanted()), false);
    gp_sampler_leave();
}

unsigned gp_sampler_frequency(unsigned *wanted)
{
    gp_sampler_enter();
    unsigned now = gp_timers_frequency();
    *wanted = sampler_highest_wanted();
    gp_sampler_leave();
    return now;
}

void gp_sampler_stop_if_idle(void)
{
    gp_sampler_enter();
    if (gp_timers_frequency() != 0 && user_count == 0 &&
        gp_clock_ns(CLOCK_MONOTONIC) - idle_since_ns > GP_SAMPLER_LINGER_NS)
        sampler_stop_locked();
    gp_sampler_leave();
}

bool gp_sampler_end_unused(void)
{
    gp_sampler_enter();
    bool is_unused = user_count == 0;
    if (is_unused && gp_timers_frequency() != 0)
        sampler_stop_locked();
    if (is_unused)
        gp_sampling_signal_give_back();
    gp_sampler_leave();
    return is_unused;
}

void gp_sampler_end(void)
{
    gp_sampler_enter();
    if (gp_timers_frequency() != 0)
        sampler_stop_locked();
    gp_sampling_signal_give_back();
    gp_sampler_leave();
}

void gp_sampler_look_for_threads(void)
{
    gp_sampler_enter();
    if (gp_timers_frequency() != 0)
        gp_timers_give_missing();
    gp_sampler_leave();
}

void gp_sampler_begin_here(void)
{
    gp_thread_t *self = gp_thread_self;
    if (self == NULL)
        return;
    self->cpu.start_ns = self->cpu.sample_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    gp_ledger_edge_end_epoch(0); // nor did anything wait
    gp_slice_new_epoch();
}

void gp_sampler_before_exec(void)
{
    gp_sampler_enter();
    gp_timers_before_exec();
    gp_sampler_leave();
}

void gp_sampler_follow_forks(bool follow)
{
    leave_children = !follow;
}

bool gp_sampler_follows_forks(void)
{
    return user_count > 0 && !leave_children;
}

static void sampler_restart_locked(void)
{
    gp_thread_t *self = gp_thread_self;
    bool rests = gp_rest_is_now();
    gp_rest_in_child();
    bool goes_on = rests && !leave_children && self != NULL &&
                   sampler_start_locked(self, sampler_limited(sampler_highest_wanted())) == 0;
    if (rests && !goes_on && gp_sampler_follows_forks())
        gp_left_child_count(true);
    if (gp_timers_frequency() == 0 || rests)
        return;
    if (leave_children || gp_collector_start() != 0 || (self != NULL && gp_timers_start_again(self) != 0)) {
        if (gp_sampler_follows_forks())
            gp_left_child_count(true);
        sampler_stop_locked();
        return;
    }
    gp_slice_new_epoch();
}

void gp_sampler_restart_in_child(void)
{
    gp_sampler_enter();
    sampler_restart_locked();
    gp_sampler_leave();
}
