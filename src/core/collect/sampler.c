// SPDX-License-Identifier: MIT
#include "collect/sampler.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/cost.h"
#include "collect/left_children.h"
#include "collect/pacer.h"
#include "collect/perf_probe.h"
#include "collect/sampling_signal.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/shown.h"
#include "coro/task.h"
#include "coro/threads.h"
#include "greenprof/coro.h"
#include "settings.h"
#include "signal/edge.h"
#include "signal/handler.h"
#include "signal/hog.h"
#include "signal/mask.h"
#include "signal/rest.h"
#include "signal/slice.h"
#include "signal/wait.h"
#include "unwind/unwind.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Around everything that touches a thread's timer: what threads need to begin and to end. `engine`, `frequency` and
// `leaving` are written under both locks. The innermost of all, and never held while memory is allocated: an
// allocator's fork handlers may hold its locks while a fork takes this one.
static pthread_mutex_t timer_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t users[PROF_FREQUENCY_MAX_HZ + 1]; // by frequency
static unsigned user_count, frequency;            // frequency 0 = nothing is sampled
static unsigned patient_count;                    // users that let sampling rest
static unsigned limit = PROF_FREQUENCY_MAX_HZ;    // what the budget leaves
static uint64_t idle_since_ns;
static const gp_clock_engine_t *engine; // chosen, or NULL
static sigset_t mask_before_fork;       // guarded by the timer lock
static _Atomic uint64_t yielded_ns;     // process CPU time when the host took the signal; 0 = it did not
static bool leave_children;             // forked children are not sampled
static bool leaving;                    // exec is under way: no thread gets a timer any more

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

uint64_t gp_sampler_thread_cpu_ns(int tid)
{
    return gp_clock_ns(gp_thread_clock(tid));
}

uint64_t gp_sampler_process_cpu_ns(void)
{
    uint64_t until = atomic_load_explicit(&yielded_ns, memory_order_relaxed);
    if (until != 0) // what ran since then was not sampled
        return until;
    uint64_t own = gp_thread_own_cpu_ns(), all = gp_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    return all > own ? all - own : 0;
}

enum gp_engine gp_sampler_engine(void)
{
    return engine != NULL ? engine->id : GP_ENGINE_NONE;
}

uint64_t gp_sampler_longest_gap_ns(const gp_thread_t *thread)
{
    return gp_timer_longest_gap_ns(&thread->timer);
}

int gp_sampler_choose_engine(const char *name)
{
    const gp_clock_engine_t *found = gp_clock_engine_find(name);
    if (found == NULL)
        return -EINVAL;
    engine = found;
    return 0;
}

static int arm(gp_thread_t *thread, const gp_clock_engine_t *with)
{
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    gp_timer_prepare(&thread->timer, frequency, (uint32_t)tid * 2654435761u ^ (uint32_t)gp_ticks());
    // One that is met while sampling is younger than that: what it has used is in its first sample, or in no profile.
    bool is_new = prof_coro_active != 0 && thread->start_cpu_ns == 0;
    if (!is_new)
        thread->start_cpu_ns = thread->sample_cpu_ns = gp_sampler_thread_cpu_ns(tid);
    return gp_timer_arm(&thread->timer, with, tid, gp_sampling_signal());
}

// A thread that cannot have what the others have gets the timer that needs no descriptor. Each counts once.
static void arm_or_count(gp_thread_t *thread)
{
    if (leaving || thread->timer.armed || thread->timer.refused)
        return;
    int error = arm(thread, engine);
    bool is_replaced = error != 0 && error != -ESRCH && engine != &gp_clock_cpu;
    if (is_replaced)
        error = arm(thread, &gp_clock_cpu);
    if (error == 0 && is_replaced)
        gp_thread_count(thread, GP_COUNTER_TIMER_REPLACED);
    // A main thread that has ended by itself stays in the list of threads; it has no time to measure.
    thread->timer.refused = error != 0 && error != -ESRCH;
    if (thread->timer.refused)
        gp_thread_count(thread, GP_COUNTER_TIMER_FAILED);
}

// Give a timer that was taken away another one. The accounts go on: what passed meanwhile is in the next sample's
// weight.
static void arm_again(gp_thread_t *thread)
{
    const gp_clock_engine_t *with = atomic_load_explicit(&thread->timer.engine, memory_order_relaxed);
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    gp_timer_prepare(&thread->timer, frequency, thread->timer.random);
    if (gp_timer_arm(&thread->timer, with, tid, gp_sampling_signal()) != 0)
        arm_or_count(thread);
}

static void arm_if_sampling(gp_thread_t *thread)
{
    gp_lock(&timer_lock);
    if (frequency != 0)
        arm_or_count(thread);
    gp_unlock(&timer_lock);
}

static void on_exit_of(gp_thread_t *thread)
{
    sigset_t signals;
    gp_sampling_signal_set(&signals);
    gp_mask_change(SIG_BLOCK, &signals, NULL); // for good: the thread ends
    gp_lock(&timer_lock);
    gp_timer_disarm(&thread->timer);
    if (frequency != 0)
        gp_slice_settle_now(thread);
    gp_unlock(&timer_lock);
}

static const gp_thread_watch_t watch = {arm_if_sampling, on_exit_of};

static void arm_task(pid_t tid, void *unused)
{
    (void)unused;
    gp_thread_t *thread = gp_thread_prepare(tid);
    if (thread == NULL)
        return;
    gp_lock(&timer_lock);
    if (!leaving && thread->timer.armed && !gp_timer_is_alive(&thread->timer)) // the host closed it
        arm_again(thread);
    arm_or_count(thread);
    gp_unlock(&timer_lock);
}

// One of those that ended last is still listed while it runs destructors after ours, the sampling signal blocked.
static void arm_unless_ended(pid_t tid, void *unused)
{
    if (gp_thread_find(tid) != NULL || !gp_thread_has_ended(tid) || !gp_task_blocks(tid, gp_sampling_signal()))
        arm_task(tid, unused);
}

static void disarm_all(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    frequency = 0;
    for (; thread != NULL; thread = thread->next) {
        gp_timer_disarm(&thread->timer);
        thread->timer.refused = false;
    }
    gp_unlock(&timer_lock);
}

static void set_frequency(unsigned hz)
{
    gp_lock(&timer_lock);
    frequency = hz;
    gp_unlock(&timer_lock);
}

static void set_engine(const gp_clock_engine_t *chosen)
{
    gp_lock(&timer_lock);
    engine = chosen;
    gp_unlock(&timer_lock);
}

static int arm_first(gp_thread_t *self)
{
    if (engine == &gp_clock_perf && gp_perf_is_fatal())
        return -EPERM;
    int error = engine->start != NULL ? engine->start() : 0;
    if (error != 0)
        return error;
    gp_lock(&timer_lock);
    error = arm(self, engine);
    gp_unlock(&timer_lock);
    return error;
}

// Arm the calling thread, with the chosen engine or the first that works.
static int arm_self(gp_thread_t *self)
{
    int error = -ENOSYS;
    if (engine != NULL)
        return arm_first(self);
    for (int i = 0; gp_clock_engines[i] != NULL && error != 0; i++) {
        set_engine(gp_clock_engines[i]);
        error = arm_first(self);
    }
    if (error != 0)
        set_engine(NULL);
    return error;
}

static int start_locked(gp_thread_t *self, unsigned hz)
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
    gp_wait_set_frequency(hz);
    gp_handler_kick = gp_collector_kick;
    gp_clock_pacer = &gp_pacer;
    set_frequency(hz);
    gp_slice_new_epoch();
    error = arm_self(self);
    if (error != 0) {
        set_frequency(0);
        return error;
    }
    // Release: partner of the acquire in handle().
    atomic_store_explicit(&gp_handler_sampling, true, memory_order_release);
    gp_shown_resume();
    gp_coro_set_draining(NULL); // again: the collector may just have found that nothing samples
    atomic_store_explicit(&gp_thread_watch, &watch, memory_order_release);
    gp_task_each(arm_task, NULL);
    atomic_store_explicit(&yielded_ns, 0, memory_order_relaxed);
    __atomic_store_n(&prof_coro_active, 1, __ATOMIC_RELEASE);
    return 0;
}

static void stop_locked(void)
{
    __atomic_store_n(&prof_coro_active, 0, __ATOMIC_RELEASE);
    atomic_store_explicit(&gp_handler_sampling, false, memory_order_release);
    gp_edge_end_epoch(gp_ticks());
    gp_shown_pause();
    disarm_all();
}

// Where the thread blocks the signal one may be pending, and would stay so: take it off.
static void take_off_pending(int number)
{
    sigset_t signals;
    struct timespec now = {0};
    sigemptyset(&signals);
    sigaddset(&signals, number);
    while (syscall(SYS_rt_sigtimedwait, &signals, NULL, &now, sizeof(uint64_t)) > 0)
        ;
}

// Give every timer the present signal.
static void rearm_all(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    for (; thread != NULL; thread = thread->next) {
        if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE || !thread->timer.armed)
            continue;
        gp_timer_disarm(&thread->timer);
        arm_again(thread);
    }
    gp_unlock(&timer_lock);
}

static void yield_locked(int host)
{
    bool moved = gp_sampling_signal_take(host) == 0;
    if (frequency != 0 && moved) {
        rearm_all();
    } else if (frequency != 0) {
        uint64_t now = gp_sampler_process_cpu_ns();
        stop_locked();
        atomic_store_explicit(&yielded_ns, now, memory_order_relaxed);
    }
}

void gp_sampler_yield(void)
{
    gp_sampler_enter();
    int host = gp_sampling_signal();
    yield_locked(host);
    take_off_pending(host);
    gp_sampler_leave();
}

void gp_sampler_look_at_signal(void)
{
    gp_sampler_enter();
    if (frequency != 0 && !gp_sampling_signal_is_ours())
        yield_locked(gp_sampling_signal());
    gp_sampler_leave();
}

bool gp_sampler_has_yielded(void)
{
    return atomic_load_explicit(&yielded_ns, memory_order_relaxed) != 0;
}

static unsigned limited(unsigned hz)
{
    return hz < limit ? hz : limit;
}

//   at_once: the interval under way ends as well, at the cost of a system call for each thread.
static void change_frequency(unsigned hz, bool at_once)
{
    if (hz == frequency || hz == 0)
        return;
    gp_wait_set_frequency(hz);
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    frequency = hz;
    for (; thread != NULL; thread = thread->next) {
        if (!thread->timer.armed)
            continue;
        // The period alone: the handler draws the next interval from it; the accounts go on.
        thread->timer.period_ns = 1000000000u / hz;
        if (!at_once)
            continue;
        thread->timer.block_left = 0;
        atomic_load_explicit(&thread->timer.engine, memory_order_relaxed)
            ->set_interval(&thread->timer, thread->timer.period_ns);
    }
    gp_unlock(&timer_lock);
}

static unsigned highest_wanted(void)
{
    for (unsigned hz = PROF_FREQUENCY_MAX_HZ; hz > 0; hz--)
        if (users[hz] > 0)
            return hz;
    return 0;
}

// Of the program's, where the caller is a thread of greenprof's own: the main one, if it lives.
static gp_thread_t *find_one_of_program(void)
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

// Before the lock: a still unknown thread is announced to arm_if_sampling().
static gp_thread_t *find_self(void)
{
    gp_thread_t *self = gp_thread_attach();
    return self == NULL && gp_thread_is_own((pid_t)syscall(SYS_gettid)) ? find_one_of_program() : self;
}

static void end_rest(void)
{
    if (!gp_rest_is_now())
        return;
    gp_rest_end(gp_sampler_process_cpu_ns());
    gp_collector_kick(); // it waits for no end of a rest that is over, or else for good
}

int gp_sampler_acquire(unsigned hz)
{
    int error = 0;
    gp_thread_t *self = find_self();
    if (self == NULL)
        return -ENOMEM;
    gp_sampler_enter();
    gp_left_children_begin();
    if (frequency == 0)
        error = start_locked(self, limited(hz > highest_wanted() ? hz : highest_wanted()));
    if (error == 0)
        end_rest();
    if (error == 0 && (limited(hz) > frequency || user_count == 0))
        change_frequency(limited(hz), true);
    if (error == 0) {
        users[hz]++;
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
        end_rest(); // for good
    if (user_count == 0)
        idle_since_ns = gp_clock_ns(CLOCK_MONOTONIC);
    else if (hz >= frequency && users[hz] == 0)
        change_frequency(limited(highest_wanted()), true);
    gp_sampler_leave();
}

int gp_sampler_acquire_patiently(unsigned hz)
{
    gp_sampler_enter();
    bool rests = gp_rest_is_now();
    users[hz] += rests;
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

bool gp_sampler_may_rest(void)
{
    gp_sampler_enter();
    bool may = frequency != 0 && user_count > 0 && patient_count == user_count;
    gp_sampler_leave();
    return may;
}

void gp_sampler_sample_soon(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    for (; thread != NULL && frequency != 0; thread = thread->next) {
        if (!thread->timer.armed)
            continue;
        thread->timer.period_ns = GP_SAMPLER_SOON_NS;
        thread->timer.block_left = 0;
        atomic_load_explicit(&thread->timer.engine, memory_order_relaxed)
            ->set_interval(&thread->timer, GP_SAMPLER_SOON_NS);
    }
    gp_unlock(&timer_lock);
}

bool gp_sampler_rest(void)
{
    gp_sampler_enter();
    bool may = frequency != 0 && user_count > 0 && patient_count == user_count;
    if (may) { // first: what happens from here on is told to the collector all the same
        gp_rest_begin(gp_sampler_process_cpu_ns());
        stop_locked();
        gp_collector_kick(); // what is in the rings names modules, which may go from here on
    }
    gp_sampler_leave();
    return may;
}

int gp_sampler_resume(void)
{
    gp_thread_t *self = find_self();
    if (self == NULL)
        return -EAGAIN;
    gp_sampler_enter();
    bool rests = gp_rest_is_now();
    int error = rests ? start_locked(self, limited(highest_wanted())) : 0;
    if (error != 0) // the host has taken the signal meanwhile: as gp_sampler_yield()
        atomic_store_explicit(&yielded_ns, gp_sampler_process_cpu_ns(), memory_order_relaxed);
    end_rest();
    gp_sampler_leave();
    return error;
}

void gp_sampler_limit(unsigned hz)
{
    gp_sampler_enter();
    limit = hz;
    if (frequency != 0 && user_count > 0)
        change_frequency(limited(highest_wanted()), false);
    gp_sampler_leave();
}

unsigned gp_sampler_frequency(unsigned *wanted)
{
    gp_sampler_enter();
    unsigned now = frequency;
    *wanted = highest_wanted();
    gp_sampler_leave();
    return now;
}

void gp_sampler_stop_if_idle(void)
{
    gp_sampler_enter();
    if (frequency != 0 && user_count == 0 && gp_clock_ns(CLOCK_MONOTONIC) - idle_since_ns > GP_SAMPLER_LINGER_NS)
        stop_locked();
    gp_sampler_leave();
}

bool gp_sampler_end_unused(void)
{
    gp_sampler_enter();
    bool is_unused = user_count == 0;
    if (is_unused && frequency != 0)
        stop_locked();
    if (is_unused)
        gp_sampling_signal_give_back();
    gp_sampler_leave();
    return is_unused;
}

void gp_sampler_look_for_threads(void)
{
    gp_sampler_enter();
    if (frequency != 0) {
        if (engine->start != NULL && gp_thread_own_may_stay())
            engine->start(); // where it could not be begun again
        gp_task_each(arm_unless_ended, NULL);
    }
    gp_sampler_leave();
}

void gp_sampler_disarm(gp_thread_t *thread)
{
    gp_lock(&timer_lock);
    gp_timer_disarm(&thread->timer);
    gp_unlock(&timer_lock);
}

void gp_sampler_begin_here(void)
{
    gp_thread_t *self = gp_thread_self;
    if (self == NULL)
        return;
    self->start_cpu_ns = self->sample_cpu_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    gp_edge_end_epoch(0); // nor did anything wait
    gp_slice_new_epoch();
}

void gp_sampler_before_exec(void)
{
    gp_sampler_enter();
    // A signal still pending when the new image starts would kill it: the timer goes first, what it had sent is
    // delivered on the way out of the system call that removes it.
    // Nor may the collector, which looks for threads without a timer, give it a new one.
    gp_lock(&timer_lock);
    leaving = true;
    if (frequency != 0 && gp_thread_self != NULL) {
        gp_timer_disarm(&gp_thread_self->timer);
        take_off_pending(gp_sampling_signal());
    }
    gp_unlock(&timer_lock);
    gp_sampler_leave();
}

void gp_sampler_after_failed_exec(void)
{
    gp_lock(&timer_lock);
    leaving = false;
    gp_unlock(&timer_lock);
    if (gp_thread_self != NULL)
        arm_if_sampling(gp_thread_self);
}

void gp_sampler_hold_timers(void)
{
    gp_lock(&timer_lock);
    // A signal during fork() makes the kernel start it over: a big process at a high rate would never get through.
    sigset_t signals;
    gp_sampling_signal_set(&signals);
    gp_mask_change(SIG_BLOCK, &signals, &mask_before_fork);
}

void gp_sampler_let_timers_go(void)
{
    gp_mask_change(SIG_SETMASK, &mask_before_fork, NULL);
    gp_unlock(&timer_lock);
}

void gp_sampler_abandon_timers(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        gp_timer_abandon(&thread->timer);
}

void gp_sampler_follow_forks(bool follow)
{
    leave_children = !follow;
}

bool gp_sampler_follows_forks(void)
{
    return user_count > 0 && !leave_children;
}

static void restart_locked(void)
{
    gp_thread_t *self = gp_thread_self;
    bool rests = gp_rest_is_now();
    gp_rest_in_child();
    bool goes_on = rests && !leave_children && self != NULL && start_locked(self, limited(highest_wanted())) == 0;
    if (rests && !goes_on && gp_sampler_follows_forks())
        gp_left_child_count(true);
    if (frequency == 0 || rests)
        return;
    if (leave_children || gp_collector_start() != 0 || (self != NULL && arm_first(self) != 0)) {
        if (gp_sampler_follows_forks())
            gp_left_child_count(true);
        stop_locked();
        return;
    }
    gp_slice_new_epoch();
}

void gp_sampler_restart_in_child(void)
{
    gp_sampler_enter();
    restart_locked();
    gp_sampler_leave();
}
