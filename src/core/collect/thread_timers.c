// SPDX-License-Identifier: MIT
#include "collect/thread_timers.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/cpu_without_sample.h"
#include "collect/perf_probe.h"
#include "collect/sampling_signal.h"
#include "coro/lock.h"
#include "coro/task.h"
#include "coro/threads.h"
#include "greenprof/coro.h"
#include "signal/clock_engine.h"
#include "signal/ledger_edges.h"
#include "signal/mask.h"
#include "signal/slice.h"

// Around everything that touches a thread's timer: what threads need to begin and to end. `engine`, `frequency` and
// `leaving` are written under this lock and the sampler's. The innermost of all, and never held while memory is
// allocated: an allocator's fork handlers may hold its locks while a fork takes this one.
static pthread_mutex_t timer_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned frequency;              // 0 = nothing is sampled
static const gp_clock_engine_t *engine; // chosen, or NULL
static sigset_t mask_before_fork;       // guarded by the lock
static bool leaving;                    // exec is under way: no thread gets a timer any more

unsigned gp_timers_frequency(void)
{
    return frequency;
}

enum gp_engine gp_timers_engine(void)
{
    return engine != NULL ? engine->id : GP_ENGINE_NONE;
}

int gp_timers_choose_engine(const char *name)
{
    const gp_clock_engine_t *found = gp_clock_engine_find(name);
    if (found == NULL)
        return -EINVAL;
    engine = found;
    return 0;
}

static int thread_timers_arm(gp_thread_t *thread, const gp_clock_engine_t *with)
{
    if (with == &gp_clock_perf && gp_perf_is_fatal())
        return -EPERM;
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    gp_timer_prepare(&thread->timer, frequency, (uint32_t)tid * 2654435761u ^ (uint32_t)gp_ticks());
    // A thread first met while sampling is younger: its time so far is in its first sample, or in no profile.
    bool is_new = prof_coro_active != 0 && thread->cpu.start_ns == 0;
    if (!is_new)
        thread->cpu.start_ns = thread->cpu.sample_ns = gp_clock_ns(gp_thread_clock(tid));
    return gp_timer_arm(&thread->timer, with, tid, gp_sampling_signal());
}

// A thread without the others' kind of timer gets the kind that needs no descriptor. Each counts once.
static void thread_timers_arm_or_count(gp_thread_t *thread)
{
    if (leaving || thread->timer.armed || thread->timer.refused)
        return;
    int error = thread_timers_arm(thread, engine);
    bool is_replaced = error != 0 && error != -ESRCH && engine != &gp_clock_cpu;
    if (is_replaced)
        error = thread_timers_arm(thread, &gp_clock_cpu);
    if (error == 0 && is_replaced)
        gp_thread_count(thread, GP_COUNTER_TIMER_REPLACED);
    // A main thread that has ended by itself stays in the list of threads; it has no time to measure.
    thread->timer.refused = error != 0 && error != -ESRCH;
    if (thread->timer.refused)
        gp_thread_count(thread, GP_COUNTER_TIMER_FAILED);
}

// Replace a timer that was taken away. The accounts go on: what passed meanwhile is in the next sample's weight.
static void thread_timers_arm_again(gp_thread_t *thread)
{
    const gp_clock_engine_t *with = atomic_load_explicit(&thread->timer.engine, memory_order_relaxed);
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    gp_timer_prepare(&thread->timer, frequency, thread->timer.random);
    bool is_fatal = with == &gp_clock_perf && gp_perf_is_fatal();
    if (is_fatal || gp_timer_arm(&thread->timer, with, tid, gp_sampling_signal()) != 0)
        thread_timers_arm_or_count(thread);
}

static void thread_timers_arm_if_sampling(gp_thread_t *thread)
{
    gp_lock(&timer_lock);
    if (frequency != 0)
        thread_timers_arm_or_count(thread);
    gp_unlock(&timer_lock);
}

static void thread_timers_on_exit_of(gp_thread_t *thread)
{
    sigset_t signals;
    gp_sampling_signal_set(&signals);
    gp_mask_change(SIG_BLOCK, &signals, NULL); // for good: the thread ends
    gp_lock(&timer_lock);
    if (frequency != 0)
        gp_cpu_without_sample_keep(thread);
    gp_timer_disarm(&thread->timer);
    if (frequency != 0)
        gp_slice_settle_now(thread);
    gp_unlock(&timer_lock);
}

static const gp_thread_watch_t watch = {thread_timers_arm_if_sampling, thread_timers_on_exit_of};

// Has a listed thread without a block ended since, or is it ending? A thread ended lately is still there while it runs
// destructors after ours, the sampling signal blocked. A thread in a sandbox older than our calls (greenprof is being
// attached) is left alone: a sample would end it.
static bool thread_timers_is_over_or_own(pid_t tid)
{
    if (gp_thread_may_be_own(tid) || gp_task_differs(tid))
        return true;
    return gp_thread_has_ended(tid) ? !gp_task_takes(tid, gp_sampling_signal()) : !gp_task_is_there(tid);
}

static void thread_timers_arm_task(pid_t tid, void *unused)
{
    (void)unused;
    gp_thread_t *thread = gp_thread_prepare(tid, thread_timers_is_over_or_own);
    if (thread == NULL)
        return;
    gp_lock(&timer_lock);
    if (!leaving && thread->timer.armed && !gp_timer_is_alive(&thread->timer)) // the host closed it
        thread_timers_arm_again(thread);
    thread_timers_arm_or_count(thread);
    gp_unlock(&timer_lock);
}

void gp_timers_stop(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    frequency = 0;
    for (; thread != NULL; thread = thread->next) {
        gp_cpu_without_sample_keep(thread);
        gp_timer_disarm(&thread->timer);
        thread->timer.refused = false;
    }
    gp_unlock(&timer_lock);
}

static void thread_timers_set_engine(const gp_clock_engine_t *chosen)
{
    gp_lock(&timer_lock);
    engine = chosen;
    gp_unlock(&timer_lock);
}

static int thread_timers_try_engine(gp_thread_t *self)
{
    if (engine == &gp_clock_perf && gp_perf_is_fatal()) // without the lock, the first time
        return -EPERM;
    int error = engine->start != NULL ? engine->start() : 0;
    if (error != 0)
        return error;
    gp_lock(&timer_lock);
    error = thread_timers_arm(self, engine);
    gp_unlock(&timer_lock);
    return error;
}

int gp_timers_start_again(gp_thread_t *self)
{
    int error = thread_timers_try_engine(self);
    if (error != -ENOTSUP)
        return error;
    gp_lock(&timer_lock);
    thread_timers_arm_or_count(self);
    error = self->timer.armed ? 0 : -ENOTSUP;
    gp_unlock(&timer_lock);
    return error;
}

static void thread_timers_set_frequency(unsigned hz)
{
    gp_lock(&timer_lock);
    frequency = hz;
    gp_unlock(&timer_lock);
}

// Arm the calling thread, with the chosen engine or the first that works.
static int thread_timers_arm_self(gp_thread_t *self)
{
    int error = -ENOSYS;
    if (engine != NULL)
        return gp_timers_start_again(self);
    for (int i = 0; gp_clock_engines[i] != NULL && error != 0; i++) {
        thread_timers_set_engine(gp_clock_engines[i]);
        error = thread_timers_try_engine(self);
    }
    if (error != 0)
        thread_timers_set_engine(NULL);
    return error;
}

int gp_timers_start(gp_thread_t *self, unsigned hz)
{
    thread_timers_set_frequency(hz);
    int error = thread_timers_arm_self(self);
    if (error != 0)
        thread_timers_set_frequency(0);
    return error;
}

void gp_timers_give_all(void)
{
    atomic_store_explicit(&gp_thread_watch, &watch, memory_order_release);
    gp_task_each(thread_timers_arm_task, NULL);
}

void gp_timers_renew(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    for (; thread != NULL; thread = thread->next) {
        if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE || !thread->timer.armed)
            continue;
        gp_timer_disarm(&thread->timer);
        thread_timers_arm_again(thread);
    }
    gp_unlock(&timer_lock);
}

// The next sample draws another interval. Which of two is set that a handler draws meanwhile is left to chance: it is
// for one sample.
static void thread_timers_end_interval(gp_timer_t *timer)
{
    timer->block_left = 0;
    if (atomic_load_explicit(&timer->set_ns, memory_order_relaxed) <= timer->period_ns)
        return;
    atomic_store_explicit(&timer->set_ns, timer->period_ns, memory_order_relaxed);
    atomic_load_explicit(&timer->engine, memory_order_relaxed)->set_interval(timer, timer->period_ns);
}

void gp_timers_change(unsigned hz, bool at_once)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    frequency = hz;
    for (; thread != NULL; thread = thread->next) {
        if (!thread->timer.armed)
            continue;
        // The period alone: the handler draws the next interval from it; the accounts go on.
        thread->timer.period_ns = 1000000000u / hz;
        if (at_once)
            thread_timers_end_interval(&thread->timer);
    }
    gp_unlock(&timer_lock);
}

void gp_timers_sample_soon(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_lock(&timer_lock);
    for (; thread != NULL && frequency != 0; thread = thread->next) {
        if (!thread->timer.armed)
            continue;
        thread->timer.period_ns = GP_TIMERS_SOON_NS;
        thread_timers_end_interval(&thread->timer);
    }
    gp_unlock(&timer_lock);
}

// Time that no sample has settled: for a thread without samples since sampling began, all its time since then.
static uint64_t thread_timers_unsettled_ns(gp_thread_t *thread)
{
    prof_coro_t *coro;
    if (thread->epoch == atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed))
        return gp_slice_open_ns(thread, &coro);
    uint64_t now_ns = gp_clock_ns(gp_thread_clock(atomic_load_explicit(&thread->tid, memory_order_relaxed)));
    return now_ns > thread->cpu.start_ns ? now_ns - thread->cpu.start_ns : 0;
}

bool gp_timers_any_is_unsettled(uint64_t ns)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    bool any = false;
    gp_lock(&timer_lock);
    for (; thread != NULL && !any; thread = thread->next)
        any = thread->timer.armed && atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE &&
              thread_timers_unsettled_ns(thread) > ns;
    gp_unlock(&timer_lock);
    return any;
}

void gp_timers_give_missing(void)
{
    if (engine->start != NULL && gp_thread_helper_may_stay())
        engine->start(); // where it could not be begun again
    gp_task_each(thread_timers_arm_task, NULL);
}

void gp_timers_disarm(gp_thread_t *thread)
{
    gp_lock(&timer_lock);
    gp_timer_disarm(&thread->timer);
    gp_unlock(&timer_lock);
}

void gp_timers_before_exec(void)
{
    // A signal still pending when the new image starts would kill it: the timer goes first, what it had sent is
    // delivered on the way out of the system call that removes it.
    // Nor may the collector, which looks for threads without a timer, give it a new one.
    gp_thread_t *self = gp_thread_find((pid_t)syscall(SYS_gettid)); // the thread may not know its timer yet
    gp_lock(&timer_lock);
    leaving = true;
    if (frequency != 0 && self != NULL) {
        gp_cpu_without_sample_keep(self);
        gp_timer_disarm(&self->timer);
        gp_sampling_signal_take_off(gp_sampling_signal());
    }
    gp_unlock(&timer_lock);
}

void gp_timers_after_failed_exec(void)
{
    gp_lock(&timer_lock);
    leaving = false;
    gp_unlock(&timer_lock);
    gp_thread_t *self = gp_thread_find((pid_t)syscall(SYS_gettid));
    if (self != NULL)
        thread_timers_arm_if_sampling(self);
}

void gp_timers_hold(void)
{
    gp_lock(&timer_lock);
    // A signal during fork() makes the kernel start it over: a big process at a high rate would never get through.
    sigset_t signals;
    gp_sampling_signal_set(&signals);
    gp_mask_change(SIG_BLOCK, &signals, &mask_before_fork);
}

void gp_timers_let_go(void)
{
    gp_mask_change(SIG_SETMASK, &mask_before_fork, NULL);
    gp_unlock(&timer_lock);
}

void gp_timers_abandon(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        gp_timer_abandon(&thread->timer);
}
