// SPDX-License-Identifier: MIT
// Timers of threads: they are due in order, threads that no descriptor is left for are sampled all the same, and timers
// are set no more often than they need be.
#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "collect/pace_queue.h"
#include "collect/sampler.h"
#include "collect/sampling_signal.h"
#include "collect/thread_timers.h"
#include "coro/threads.h"
#include "signal/mask.h"
#include "wrapped_syscall.h"

enum {
    WAITING = 40,
    SOFT_LIMIT = 64,
};

static _Atomic int events_opened;

static void before_syscall(long number, const long a[6])
{
    (void)a;
    events_opened += number == SYS_perf_event_open;
}

static void timers_are_due_in_order(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static gp_timer_t timers[COUNT];
    gp_pace_queue_t queue = {0};
    uint32_t random = 1;
    uint64_t sum = 0, last = 0;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525u + 1013904223u;
        assert_true(gp_pace_put(&queue, &timers[i], random >> 20));
        sum += random >> 20;
    }
    for (int i = 0; i < COUNT; i++) {
        gp_pace_entry_t entry = gp_pace_take(&queue);
        assert_true(entry.due_ns >= last && !entry.timer->armed);
        entry.timer->armed = true; // each comes once
        last = entry.due_ns;
        sum -= last;
    }
    assert_int_equal(queue.count, 0);
    assert_int_equal(sum, 0);
}

// 10,000 threads asleep at 1000 Hz would be 10 million looks a second.
static void looks_at_threads_that_sleep_are_bounded(void **state)
{
    (void)state;
    enum { LOOKS_A_SECOND = 20000 };
    assert_int_equal(gp_pace_idle_ns(1000000, 1), 1000000);
    assert_int_equal(gp_pace_idle_ns(1000000, 20), 1000000);
    for (uint64_t idle = 100; idle <= 1000000; idle *= 10)
        assert_in_range(idle * 1000000000u / gp_pace_idle_ns(1000000, idle), 1, LOOKS_A_SECOND);
}

static sem_t leave, there;

static void *wait_to_leave(void *unused)
{
    (void)unused;
    sem_post(&there);
    while (sem_wait(&leave) != 0)
        ;
    return NULL;
}

static int count_threads(uint64_t *replaced, uint64_t *failed)
{
    int armed = 0;
    *replaced = *failed = 0;
    for (gp_thread_t *thread = gp_thread_list; thread != NULL; thread = thread->next) {
        armed += thread->state == GP_THREAD_LIVE && thread->timer.armed;
        *replaced += thread->counters[GP_COUNTER_TIMER_REPLACED];
        *failed += thread->counters[GP_COUNTER_TIMER_FAILED];
    }
    return armed;
}

static void threads_without_a_descriptor_get_a_timer(void **state)
{
    (void)state;
    pthread_t threads[WAITING];
    struct rlimit limit, few, after;
    uint64_t replaced, failed;
    sem_init(&leave, 0, 0);
    sem_init(&there, 0, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    few.rlim_cur = SOFT_LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(gp_sampler_acquire(100), 0);
    bool is_perf = gp_timers_engine() == GP_ENGINE_PERF;
    for (int i = 0; i < WAITING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_to_leave, NULL), 0);
    for (int i = 0; i < WAITING; i++)
        sem_wait(&there);
    gp_sampler_look_for_threads();
    int opened = events_opened, armed = count_threads(&replaced, &failed);
    for (int i = 0; i < 5; i++)
        gp_sampler_look_for_threads();
    int opened_later = events_opened - opened;
    getrlimit(RLIMIT_NOFILE, &after);
    for (int i = 0; i < WAITING; i++)
        sem_post(&leave);
    for (int i = 0; i < WAITING; i++)
        pthread_join(threads[i], NULL);
    gp_sampler_release(100);
    setrlimit(RLIMIT_NOFILE, &limit);
    if (!is_perf)
        skip(); // no perf events here: the timers that there are need no descriptors
    assert_int_equal(armed, WAITING + 1);
    assert_in_range(replaced, WAITING + 1 - SOFT_LIMIT / 4, WAITING);
    assert_int_equal(failed, 0);
    assert_int_equal(opened_later, 0);
    assert_int_equal(after.rlim_cur, SOFT_LIMIT); // the host's own
}

static pthread_key_t late_key;

static void linger(void *unused)
{
    (void)unused;
    sem_post(&there);
    sem_wait(&leave);
}

static void *end_slowly(void *tid)
{
    *(pid_t *)tid = (pid_t)syscall(SYS_gettid);
    pthread_setspecific(late_key, tid);
    return NULL;
}

// Destructors of the program's, after greenprof's: a look at the process's threads finds it still there.
static void thread_that_has_ended_is_no_new_one(void **state)
{
    (void)state;
    pthread_t thread;
    pid_t tid = 0;
    sem_init(&leave, 0, 0);
    sem_init(&there, 0, 0);
    assert_int_equal(gp_sampler_acquire(100), 0);
    assert_int_equal(pthread_key_create(&late_key, linger), 0);
    assert_int_equal(pthread_create(&thread, NULL, end_slowly, &tid), 0);
    sem_wait(&there);
    gp_sampler_look_for_threads();
    bool is_known = gp_thread_find(tid) != NULL;
    sem_post(&leave);
    pthread_join(thread, NULL);
    gp_sampler_release(100);
    pthread_key_delete(late_key);
    assert_false(is_known);
}

static _Atomic bool is_enough;

static void *look_all_the_while(void *unused)
{
    gp_thread_attach();
    sem_post(&there);
    while (!is_enough)
        gp_sampler_look_for_threads();
    return unused;
}

static void *tell_index(void *index)
{
    *(uint32_t *)index = gp_thread_attach()->index;
    return NULL;
}

static uint32_t index_of_another(void)
{
    pthread_t thread;
    uint32_t index = 0;
    assert_int_equal(pthread_create(&thread, NULL, tell_index, &index), 0);
    pthread_join(thread, NULL);
    return index;
}

// Between a look at the list of threads and one at a thread that was on it.
static void threads_that_end_meanwhile_are_no_new_ones(void **state)
{
    (void)state;
    enum { THREADS = 5000 };
    pthread_t looker;
    sem_init(&there, 0, 0);
    assert_int_equal(gp_sampler_acquire(100), 0);
    assert_int_equal(pthread_create(&looker, NULL, look_all_the_while, NULL), 0);
    sem_wait(&there); // it has an index
    uint32_t first = index_of_another(), last = first;
    for (int i = 0; i < THREADS; i++)
        last = index_of_another();
    is_enough = true;
    pthread_join(looker, NULL);
    gp_sampler_release(100);
    assert_int_equal(last - first, THREADS);
}

static int intervals_set; // by others than a handler

int __real_ioctl(int fd, unsigned long request, unsigned long argument);
int __wrap_ioctl(int fd, unsigned long request, unsigned long argument);

int __wrap_ioctl(int fd, unsigned long request, unsigned long argument)
{
    intervals_set += request == PERF_EVENT_IOC_PERIOD && !gp_thread_self->in_handler;
    return __real_ioctl(fd, request, argument);
}

// A fast profile's start beside a slow one sets the timers; its end leaves this to the next sample, and another start
// before then finds them set.
static void profiles_one_after_the_other_set_timers_once(void **state)
{
    (void)state;
    enum { PROFILES = 10, SLOW_HZ = 10, FAST_HZ = 1000 };
    sigset_t signals;
    assert_int_equal(gp_sampler_acquire(SLOW_HZ), 0);
    bool is_perf = gp_timers_engine() == GP_ENGINE_PERF;
    gp_sampling_signal_set(&signals);
    gp_mask_change(SIG_BLOCK, &signals, NULL);
    intervals_set = 0;
    assert_int_equal(gp_sampler_acquire(FAST_HZ), 0);
    int at_first = intervals_set;
    for (int i = 0; i < PROFILES; i++) {
        gp_sampler_release(FAST_HZ);
        assert_int_equal(gp_thread_self->timer.period_ns, 1000000000 / SLOW_HZ);
        assert_int_equal(gp_sampler_acquire(FAST_HZ), 0);
        assert_int_equal(gp_thread_self->timer.period_ns, 1000000000 / FAST_HZ);
    }
    int later = intervals_set;
    gp_sampler_release(FAST_HZ);
    gp_mask_change(SIG_UNBLOCK, &signals, NULL);
    while (atomic_load(&gp_thread_self->timer.set_ns) != 1000000000 / SLOW_HZ)
        ; // the next sample draws a long interval by itself
    gp_sampler_release(SLOW_HZ);
    if (!is_perf)
        skip(); // other timers are set in other ways
    assert_true(at_first >= 1);
    assert_int_equal(later, at_first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_are_due_in_order),
        cmocka_unit_test(looks_at_threads_that_sleep_are_bounded),
        cmocka_unit_test(threads_without_a_descriptor_get_a_timer),
        cmocka_unit_test(thread_that_has_ended_is_no_new_one),
        cmocka_unit_test(threads_that_end_meanwhile_are_no_new_ones),
        cmocka_unit_test(profiles_one_after_the_other_set_timers_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
