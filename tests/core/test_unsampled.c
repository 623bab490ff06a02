// SPDX-License-Identifier: MIT
// CPU time that is in no sample: it counts where the signal is only late, however late, and is left out and counted
// apart where none can reach the thread.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../measured.h"
#include "cmocka_all.h"
#include "collect/collector.h"
#include "collect/sampling_signal.h"
#include "collect/thread_timers.h"
#include "coro/task.h"
#include "coro/threads.h"
#include "greenprof/prof.h"
#include "signal/mask.h"
#include "work.h"

enum {
    WORK_NS = 150000000,     // several times what the engine `cpu` takes for a sample that is due
    SHORT_WORK_NS = 2000000, // less than that
#ifdef __SANITIZE_ADDRESS__
    SLACK_NS = 5000000, // and of the sanitizer's, where a thread begins
#else
    SLACK_NS = 1000000, // of greenprof's own, on the program's threads
#endif
    NEVER_S = 3600
};

// The kernel's ticks do not meet the thread at work: timers are there, and go off when it has used an hour.
static _Atomic bool ticks_miss;
static _Atomic bool timers_are_refused;

int __real_timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *old);
int __wrap_timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *old);

int __wrap_timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    static const struct itimerspec never = {.it_value = {.tv_sec = NEVER_S}};
    return __real_timer_settime(timer, flags, ticks_miss ? &never : value, old);
}

int __real_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer);
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer);

int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    if (!timers_are_refused)
        return __real_timer_create(clock, event, timer);
    errno = EAGAIN;
    return -1;
}

static uint64_t counter(enum gp_counter which)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_drain_enter();
    gp_collector_counters(counters);
    gp_drain_leave();
    return counters[which];
}

typedef struct run {
    prof_t *profile;
    uint64_t before_ns, unsampled_ns, pending_ns;
} run_t;

static run_t begin(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    run_t run = {.before_ns = thread_cpu_ns()};
    options.scope = PROF_SCOPE_PROCESS;
    run.profile = prof_start(&options);
    assert_non_null(run.profile);
    run.unsampled_ns = counter(GP_COUNTER_UNSAMPLED_NS);
    run.pending_ns = counter(GP_COUNTER_PENDING_NS);
    return run;
}

// Is the total what the calling thread has used and `others_ns`?
static bool is_total(const run_t *run, uint64_t least_ns, uint64_t others_ns)
{
    work_bounds_t bounds = {.least_ns = least_ns + others_ns};
    uint64_t total_ns = prof_total_ns(run->profile);
    bounds.most_ns = thread_cpu_ns() - run->before_ns + others_ns;
    return work_within(total_ns, bounds, 0.005, SLACK_NS);
}

static uint64_t more(enum gp_counter which, uint64_t before_ns)
{
    uint64_t now_ns = counter(which);
    return now_ns > before_ns ? now_ns - before_ns : 0;
}

static void time_before_the_first_signal_counts(void **state)
{
    (void)state;
    ticks_miss = true;
    run_t run = begin();
    uint64_t used_ns = burn(WORK_NS);
    bool is_exact = is_total(&run, used_ns, 0);
    uint64_t pending_ns = more(GP_COUNTER_PENDING_NS, run.pending_ns);
    uint64_t unsampled_ns = more(GP_COUNTER_UNSAMPLED_NS, run.unsampled_ns);
    prof_stop(run.profile);
    bool is_exact_later = is_total(&run, used_ns, 0);
    prof_free(run.profile);
    ticks_miss = false;
    assert_int_equal(unsampled_ns, 0);
    assert_measured(is_exact && is_exact_later);
    assert_measured(pending_ns >= used_ns && close_to(pending_ns, used_ns, 0.005, SLACK_NS));
}

enum how { IN_REACH, MASKED, MASKED_AT_LAST };

typedef struct worker {
    enum how how;
    uint64_t used_ns;
    bool lets_go; // before it ends
    sem_t has_worked, may_end;
} worker_t;

static void mask(int how)
{
    sigset_t signals;
    gp_sampling_signal_set(&signals);
    gp_mask_change(how, &signals, NULL); // past the program's calls, which would not block it
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    if (worker->how == MASKED)
        mask(SIG_BLOCK);
    worker->used_ns = burn(WORK_NS);
    while (worker->how == MASKED && !gp_task_holds_back((pid_t)syscall(SYS_gettid), gp_sampling_signal()))
        worker->used_ns += burn(SHORT_WORK_NS); // a tick comes
    if (worker->how == MASKED_AT_LAST)
        mask(SIG_BLOCK);
    sem_post(&worker->has_worked);
    while (sem_wait(&worker->may_end) != 0)
        ;
    if (worker->lets_go) {
        mask(SIG_UNBLOCK);
        sem_post(&worker->has_worked);
        while (sem_wait(&worker->may_end) != 0)
            ;
    }
    return NULL;
}

static pthread_t start_worker(worker_t *worker)
{
    pthread_t thread;
    sem_init(&worker->has_worked, 0, 0);
    sem_init(&worker->may_end, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, work, worker), 0);
    while (sem_wait(&worker->has_worked) != 0)
        ;
    return thread;
}

// A signal blocked at the look, as in a short section of the thread's own, does not mean that one was sent.
static void thread_that_ends_before_its_first_signal_counts(void **state)
{
    static const enum how ways[] = {IN_REACH, MASKED_AT_LAST};
    (void)state;
    for (int i = 0; i < 2; i++) {
        worker_t worker = {.how = ways[i]};
        ticks_miss = true;
        run_t run = begin();
        pthread_t thread = start_worker(&worker);
        bool is_exact = is_total(&run, 0, worker.used_ns);
        bool is_unsettled = gp_timers_any_is_unsettled(WORK_NS / 2);
        sem_post(&worker.may_end);
        pthread_join(thread, NULL);
        bool is_exact_later = is_total(&run, 0, worker.used_ns);
        uint64_t unsampled_ns = more(GP_COUNTER_UNSAMPLED_NS, run.unsampled_ns);
        uint64_t pending_ns = more(GP_COUNTER_PENDING_NS, run.pending_ns);
        prof_free(run.profile);
        ticks_miss = false;
        assert_int_equal(unsampled_ns, 0);
        assert_true(is_unsettled); // though its accounts have not begun
        assert_true(pending_ns >= worker.used_ns);
        assert_measured(is_exact && is_exact_later);
    }
}

static void thread_that_blocks_the_signal_is_left_out(void **state)
{
    (void)state;
    worker_t worker = {.how = MASKED};
    run_t run = begin();
    pthread_t thread = start_worker(&worker);
    bool is_left_out = is_total(&run, 0, 0);
    sem_post(&worker.may_end);
    pthread_join(thread, NULL);
    bool is_left_out_later = is_total(&run, 0, 0);
    uint64_t unsampled_ns = more(GP_COUNTER_UNSAMPLED_NS, run.unsampled_ns);
    prof_stop(run.profile);
    prof_free(run.profile);
    assert_true(unsampled_ns >= worker.used_ns);
    assert_measured(close_to(unsampled_ns, worker.used_ns, 0.005, SLACK_NS));
    assert_measured(is_left_out && is_left_out_later);
}

static void thread_that_lets_the_signal_through_again_counts(void **state)
{
    (void)state;
    worker_t worker = {.how = MASKED, .lets_go = true};
    run_t run = begin();
    pthread_t thread = start_worker(&worker);
    sem_post(&worker.may_end);
    while (sem_wait(&worker.has_worked) != 0)
        ;
    bool is_exact = is_total(&run, 0, worker.used_ns);
    sem_post(&worker.may_end);
    pthread_join(thread, NULL);
    uint64_t unsampled_ns = more(GP_COUNTER_UNSAMPLED_NS, run.unsampled_ns);
    prof_free(run.profile);
    assert_int_equal(unsampled_ns, 0);
    assert_measured(is_exact);
}

// The sample that comes when the signal is let through has what was used before the profile in its weight.
static void time_before_the_start_does_not_count(void **state)
{
    (void)state;
    worker_t worker = {.how = MASKED, .lets_go = true};
    run_t outer = begin();
    pthread_t thread = start_worker(&worker);
    run_t run = begin();
    sem_post(&worker.may_end);
    while (sem_wait(&worker.has_worked) != 0)
        ;
    bool is_exact = is_total(&run, 0, 0);
    sem_post(&worker.may_end);
    pthread_join(thread, NULL);
    prof_free(run.profile);
    prof_free(outer.profile);
    assert_measured(is_exact);
}

static void thread_without_a_timer_is_left_out(void **state)
{
    (void)state;
    worker_t worker = {.how = IN_REACH};
    run_t run = begin();
    timers_are_refused = true;
    pthread_t thread = start_worker(&worker);
    bool is_left_out = is_total(&run, 0, 0);
    sem_post(&worker.may_end);
    pthread_join(thread, NULL);
    timers_are_refused = false;
    bool is_left_out_later = is_total(&run, 0, 0);
    uint64_t unsampled_ns = more(GP_COUNTER_UNSAMPLED_NS, run.unsampled_ns);
    prof_free(run.profile);
    assert_true(unsampled_ns >= worker.used_ns);
    assert_measured(close_to(unsampled_ns, worker.used_ns, 0.005, SLACK_NS));
    assert_measured(is_left_out && is_left_out_later);
}

static int choose_engine(void **state)
{
    (void)state;
    return gp_timers_choose_engine("cpu");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_before_the_first_signal_counts),
        cmocka_unit_test(thread_that_ends_before_its_first_signal_counts),
        cmocka_unit_test(thread_that_blocks_the_signal_is_left_out),
        cmocka_unit_test(thread_that_lets_the_signal_through_again_counts),
        cmocka_unit_test(time_before_the_start_does_not_count),
        cmocka_unit_test(thread_without_a_timer_is_left_out),
    };
    (void)argc;
    return measured_status(cmocka_run_group_tests(tests, choose_engine, NULL), argv);
}
