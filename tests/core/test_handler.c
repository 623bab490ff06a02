// SPDX-License-Identifier: MIT
// The handler as a whole: every signal is accounted for, errno and the alternate stack are respected, nothing
// allocates.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../measured.h"
#include "cmocka_all.h"
#include "collect/collector.h"
#include "coro/threads.h"
#include "greenprof/prof.h"
#include "signal/handler.h"
#include "work.h"

// malloc and its kin are wrapped at link time in all of the core's objects: a call from inside the handler is counted.
static _Atomic unsigned long calls, calls_in_handler;

static void note(void)
{
    calls++;
    if (gp_thread_self != NULL && gp_thread_self->in_handler)
        calls_in_handler++;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t size)
{
    note();
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    note();
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    note();
    return __real_realloc(memory, size);
}

void __wrap_free(void *memory)
{
    note();
    __real_free(memory);
}

static prof_t *start(unsigned hz, prof_scope_t scope)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.frequency_hz = hz;
    options.scope = scope;
    prof_t *profile = prof_start(&options);
    assert_non_null(profile);
    return profile;
}

static void every_signal_is_accounted_for(void **state)
{
    (void)state;
    uint64_t counters[GP_COUNTER_COUNT], before[GP_COUNTER_COUNT];
    gp_collector_counters(before);
    prof_t *profile = start(10000, PROF_SCOPE_PROCESS);
    burn(300000000);
    for (int i = 0; i < 50; i++)
        raise(SIGPROF); // not ours
    prof_stop(profile);
    prof_free(profile);
    gp_collector_counters(counters);
    uint64_t drops = gp_counters_dropped(counters) - gp_counters_dropped(before);
    assert_measured(counters[GP_COUNTER_SAMPLES] - before[GP_COUNTER_SAMPLES] > 500);
    // A signal raised while the timer's is pending merges with it.
    uint64_t foreign = counters[GP_COUNTER_DROP_FOREIGN] - before[GP_COUNTER_DROP_FOREIGN];
    assert_measured(foreign >= 40);
    assert_true(foreign <= 50);
    assert_int_equal(counters[GP_COUNTER_SIGNALS] - before[GP_COUNTER_SIGNALS],
                     counters[GP_COUNTER_SAMPLES] - before[GP_COUNTER_SAMPLES] + drops);
}

static void nothing_is_allocated_in_it(void **state)
{
    (void)state;
    prof_t *profile = start(10000, PROF_SCOPE_REQUEST);
    burn(300000000);
    prof_stop(profile);
    prof_free(profile);
    assert_true(calls > 0); // the trap is set: the collector did allocate
    assert_int_equal(calls_in_handler, 0);
}

static void errno_is_kept(void **state)
{
    (void)state;
    prof_t *profile = start(10000, PROF_SCOPE_REQUEST);
    uint64_t end = thread_cpu_ns() + 300000000;
    unsigned long rounds = 0;
    while (rounds % 1024 != 0 || thread_cpu_ns() < end) {
        errno = 12345;
        for (volatile int i = 0; i < 100; i++)
            ;
        if (errno != 12345)
            fail_msg("errno changed to %d", errno);
        rounds++;
    }
    prof_free(profile);
}

static void *with_own_alternate_stack(void *unused)
{
    (void)unused;
    stack_t mine = {.ss_size = 65536}, now;
    mine.ss_sp = mmap(NULL, mine.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&mine, NULL);
    burn(50000000);
    sigaltstack(NULL, &now);
    int same = now.ss_sp == mine.ss_sp && now.ss_size == mine.ss_size;
    stack_t off = {.ss_flags = SS_DISABLE};
    sigaltstack(&off, NULL);
    burn(20000000); // without any: the handler runs on the thread's stack
    munmap(mine.ss_sp, mine.ss_size);
    return same ? NULL : (void *)1;
}

static void hosts_alternate_stack_is_respected(void **state)
{
    (void)state;
    pthread_t thread;
    void *result;
    prof_t *profile = start(5000, PROF_SCOPE_PROCESS);
    pthread_create(&thread, NULL, with_own_alternate_stack, NULL);
    pthread_join(thread, &result);
    assert_null(result);
    prof_free(profile);
}

static void resting_takes_no_samples(void **state)
{
    (void)state;
    prof_t *profile = start(1000, PROF_SCOPE_REQUEST);
    prof_free(profile);
    uint64_t before[GP_COUNTER_COUNT], after[GP_COUNTER_COUNT];
    for (int i = 0; i < 100 && gp_handler_sampling; i++)
        usleep(20000); // it lingers for a while
    assert_false(gp_handler_sampling);
    gp_collector_counters(before);
    burn(100000000);
    gp_collector_counters(after);
    assert_true(after[GP_COUNTER_SIGNALS] - before[GP_COUNTER_SIGNALS] <= 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_signal_is_accounted_for),
        cmocka_unit_test(nothing_is_allocated_in_it),
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(hosts_alternate_stack_is_respected),
        cmocka_unit_test(resting_takes_no_samples),
    };
    return measured_status(cmocka_run_group_tests(tests, NULL, NULL), argv);
}
