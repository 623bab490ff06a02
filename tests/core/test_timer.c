// SPDX-License-Identifier: MIT
// Clock engines: the interval is drawn fairly, each engine signals the thread it measures, blocked threads get none.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../measured.h"
#include "cmocka_all.h"
#include "collect/pacer.h"
#include "signal/clock_engine.h"
#include "signal/clock_paced.h"
#include "signal/ticks.h"

static const gp_clock_engine_t *engine;
static gp_timer_t timer;
static _Atomic int signals, strangers;
static _Atomic pid_t expected_tid;

static void count(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    int saved = errno;
    timer.sent = false; // as gp_timer_tick() does
    if ((pid_t)syscall(SYS_gettid) == expected_tid && engine->is_mine(&timer, info))
        signals++;
    else
        strangers++;
    gp_timer_tick(&timer, engine);
    errno = saved;
}

static void intervals_spread_around_the_period(void **state)
{
    (void)state;
    gp_timer_t drawn;
    gp_timer_prepare(&drawn, 1000, 12345);
    uint64_t sum = 0, low = UINT64_MAX, high = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t ns = gp_timer_draw(&drawn);
        sum += ns;
        low = ns < low ? ns : low;
        high = ns > high ? ns : high;
    }
    assert_in_range(low, 500000, 510000);
    assert_in_range(high, 1490000, 1500000);
    assert_in_range(sum / 100000, 990000, 1010000);
}

static void burn_cpu(uint64_t ns)
{
    uint64_t end = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

static sem_t armed, done;

static void *busy(void *unused)
{
    (void)unused;
    expected_tid = (pid_t)syscall(SYS_gettid);
    sem_post(&done);
    sem_wait(&armed);
    burn_cpu(200000000);
    sem_post(&done);
    sem_wait(&armed);
    return NULL;
}

// Armed from another thread, as threads that already exist are. Returns false where the engine does not work here.
static int signals_its_thread(const gp_clock_engine_t *which, int *while_blocked)
{
    pthread_t thread;
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART};
    engine = which;
    signals = strangers = 0;
    sigaction(SIGPROF, &action, NULL);
    sem_init(&armed, 0, 0);
    sem_init(&done, 0, 0);
    pthread_create(&thread, NULL, busy, NULL);
    sem_wait(&done);
    gp_timer_prepare(&timer, 1000, 1);
    int error = engine->arm(&timer, expected_tid, SIGPROF);
    sem_post(&armed);
    while (sem_wait(&done) != 0)
        ;
    int counted = signals;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    *while_blocked = signals - counted;
    engine->disarm(&timer);
    engine->disarm(&timer); // twice is harmless
    sem_post(&armed);
    pthread_join(thread, NULL);
    assert_int_equal(strangers, 0);
    return error == 0 ? counted : error;
}

static void perf_follows_cpu_time(void **state)
{
    (void)state;
    int blocked, got = signals_its_thread(&gp_clock_perf, &blocked);
    if (got < 0)
        skip(); // no perf events for us here
    assert_measured(got >= 120 && got <= 320);
    assert_measured(blocked <= 2);
}

static void cpu_timer_follows_cpu_time(void **state)
{
    (void)state;
    int blocked, got = signals_its_thread(&gp_clock_cpu, &blocked);
    assert_measured(got >= 10 && got <= 320); // one a kernel tick at best
    assert_measured(blocked <= 2);
}

static void monotonic_timer_follows_the_wall_clock(void **state)
{
    (void)state;
    gp_clock_pacer = &gp_pacer;
    assert_int_equal(gp_clock_monotonic.start(), 0);
    assert_int_equal(gp_clock_monotonic.start(), 0); // twice is harmless
    int blocked, got = signals_its_thread(&gp_clock_monotonic, &blocked);
    assert_measured(got >= 20 && got <= 2000);
    assert_measured(blocked <= 2); // a thread that waits is left alone
}

enum { PATIENCE_S = 20 };

static gp_timer_t looked_at; // not one that the real pacer knows
static pid_t disarming;

// Voluntary switches of a thread: it slept. Source: proc_pid_status(5).
static long sleeps_of(pid_t tid)
{
    char path[64], line[128];
    long sleeps = -1;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
    if (file != NULL)
        fclose(file);
    return sleeps;
}

// Stands for the pacer as it looks at a timer that is disarmed meanwhile. Goes on once the other thread has slept.
static void *leave_when_it_has_slept(void *has_slept)
{
    while (atomic_load(&gp_paced(&looked_at)->due_ns) != 0)
        usleep(100);
    long before = sleeps_of(disarming);
    for (uint64_t end = gp_clock_ns(CLOCK_MONOTONIC) + PATIENCE_S * 1000000000ull;
         !*(bool *)has_slept && gp_clock_ns(CLOCK_MONOTONIC) < end; usleep(1000))
        *(bool *)has_slept = sleeps_of(disarming) > before;
    atomic_store(&gp_clock_pacing, NULL);
    return NULL;
}

// A thread of real-time priority that only yields would keep the pacer from its processor for good.
static void disarming_sleeps_until_the_pacer_has_left(void **state)
{
    (void)state;
    pthread_t pacer;
    bool has_slept = false;
    gp_timer_prepare(&looked_at, 1000, 1);
    looked_at.armed = true;
    atomic_store(&gp_paced(&looked_at)->due_ns, 1);
    atomic_store(&gp_clock_pacing, &looked_at);
    disarming = (pid_t)syscall(SYS_gettid);
    assert_int_equal(pthread_create(&pacer, NULL, leave_when_it_has_slept, &has_slept), 0);
    gp_clock_monotonic.disarm(&looked_at);
    assert_null(atomic_load(&gp_clock_pacing));
    assert_false(looked_at.armed);
    pthread_join(pacer, NULL);
    assert_true(has_slept);
}

static void unknown_threads_and_names_are_errors(void **state)
{
    (void)state;
    gp_timer_t none;
    for (int i = 0; gp_clock_engines[i] != NULL; i++) {
        gp_timer_prepare(&none, 1000, 1);
        assert_true(gp_clock_engines[i]->arm(&none, 0x3fffffff, SIGPROF) < 0);
        assert_false(none.armed);
        assert_ptr_equal(gp_clock_engine_find(gp_clock_engines[i]->name), gp_clock_engines[i]);
    }
    assert_null(gp_clock_engine_find("sundial"));
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_spread_around_the_period),
        cmocka_unit_test(perf_follows_cpu_time),
        cmocka_unit_test(cpu_timer_follows_cpu_time),
        cmocka_unit_test(monotonic_timer_follows_the_wall_clock),
        cmocka_unit_test(disarming_sleeps_until_the_pacer_has_left),
        cmocka_unit_test(unknown_threads_and_names_are_errors),
    };
    return measured_status(cmocka_run_group_tests(tests, NULL, NULL), argv);
}
