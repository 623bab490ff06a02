// SPDX-License-Identifier: MIT
// Threads found by others: where their stacks are, and what their first signal may do.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "coro/threads.h"
#include "sample_at.h"

#if defined(SAMPLE_AT)

enum { SLOW_HZ = 1, MUCH_NS = 200000000 }; // sent signals come long before those of the timer

static void assert_own_stack(const prof_coro_t *root)
{
    uintptr_t lo, hi;
    gp_thread_own_stack(&lo, &hi);
    assert_int_equal(root->lo, lo);
    assert_int_equal(root->hi, hi);
}

static void *start_profile(void *unused)
{
    (void)unused;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.frequency_hz = SLOW_HZ;
    options.scope = PROF_SCOPE_PROCESS;
    gp_timers_choose_engine("cpu");
    return prof_start(&options);
}

// Burn until one signal would be worth a sample, and send it. Returns the samples that were taken.
static uint64_t samples_of_a_signal(gp_thread_t *thread)
{
    burn(MUCH_NS);
    uint64_t before = thread->counters[GP_COUNTER_SAMPLES], signals = thread->counters[GP_COUNTER_SIGNALS];
    sample_at_send_here(thread);
    assert_int_equal(thread->counters[GP_COUNTER_SIGNALS], signals + 1);
    return thread->counters[GP_COUNTER_SAMPLES] - before;
}

static prof_t *start_on_another_thread(void)
{
    pthread_t thread;
    void *profile;
    pthread_create(&thread, NULL, start_profile, NULL);
    pthread_join(thread, &profile);
    assert_non_null(profile);
    return profile;
}

static void take_alternate_stack_away(void)
{
    stack_t off = {.ss_flags = SS_DISABLE};
    sigaltstack(&off, NULL);
}

// As where the library is loaded by another thread.
static void main_thread_is_found_by_another(void **state)
{
    (void)state;
    uintptr_t lo, hi;
    gp_thread_detach();
    take_alternate_stack_away();
    prof_t *profile = start_on_another_thread();
    gp_thread_t *thread = gp_thread_find(getpid());
    assert_non_null(thread);
    assert_null(gp_thread_self);
    gp_thread_own_stack(&lo, &hi);
    assert_true(thread->root->hi >= hi);            // the C library leaves out the pages of the environment
    assert_true(thread->root->lo < (uintptr_t)&hi); // without a limit it begins where others end at that time

    assert_int_equal(samples_of_a_signal(thread), 0);
    assert_ptr_equal(gp_thread_self, thread);
    assert_int_equal(thread->counters[GP_COUNTER_DROP_IDLE], 1);
    assert_int_equal(samples_of_a_signal(thread), 1);
    assert_int_equal(thread->counters[GP_COUNTER_OUTSIDE], 0);
    assert_true(thread->root->hi >= hi);
    assert_false(gp_thread_nested);
    gp_thread_attach();
    assert_own_stack(thread->root);
    prof_stop(profile);
    prof_free(profile);
}

static _Atomic pid_t other_tid;
static _Atomic(gp_thread_t *) other_block;

static void *other_thread(void *result)
{
    other_tid = (pid_t)syscall(SYS_gettid);
    while (other_block == NULL)
        usleep(1000);
    gp_thread_t *thread = other_block;
    *(uint64_t *)result = samples_of_a_signal(thread);
    assert_true(thread->root->hi == (uintptr_t)__builtin_thread_pointer());
    gp_thread_attach();
    assert_own_stack(thread->root);
    assert_true(samples_of_a_signal(thread) == 1);
    return NULL;
}

// A thread created behind our back: guessed bounds hold until it can be asked.
static void thread_is_found(void **state)
{
    (void)state;
    typedef int create_t(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    create_t *create = (create_t *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    pthread_t thread;
    uint64_t samples = 1;
    prof_t *profile = start_profile(NULL);
    create(&thread, NULL, other_thread, &samples);
    while (other_tid == 0 || gp_thread_find(other_tid) == NULL || !gp_thread_find(other_tid)->timer.armed)
        usleep(1000); // the collector looks for new threads
    other_block = gp_thread_find(other_tid);
    pthread_join(thread, NULL);
    assert_int_equal(samples, 0);
    prof_stop(profile);
    prof_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(main_thread_is_found_by_another),
        cmocka_unit_test(thread_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; // how a signal is sent from there is written for x86-64
}

#endif
