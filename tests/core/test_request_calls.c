// SPDX-License-Identifier: MIT
// System calls of a coroutine's request: of its profile's beginning and end, and of its trace's. Linked with --wrap of
// what stands behind an account: which CPU time, how often asleep.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"
#include "greenprof/trace.h"

static __thread unsigned calls;

static void before_syscall(long number, const long arguments[6])
{
    (void)arguments;
    calls += number == SYS_clock_gettime || number == SYS_futex;
}

#include "wrapped_syscall.h"

int __real_getrusage(int who, struct rusage *usage);
int __wrap_getrusage(int who, struct rusage *usage);
int __wrap_getrusage(int who, struct rusage *usage)
{
    calls++;
    return __real_getrusage(who, usage);
}

enum { REQUESTS = 2000, SHORT_NS = 20000 };

static prof_t *around;
static prof_coro_t *coro;

static int setup(void **state)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    (void)state;
    options.scope = PROF_SCOPE_PROCESS;
    around = prof_start(&options);
    coro = prof_coro_create(NULL, 0, "request"); // no stack: the hint alone says that it runs
    prof_coro_switch_hook(coro);
    return around != NULL && coro != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    prof_coro_switch_hook(NULL);
    prof_coro_destroy(coro);
    prof_free(around);
    return 0;
}

static void profile_one(void)
{
    prof_t *profile = prof_start(NULL);
    assert_int_equal(prof_stop(profile), 0);
    prof_free(profile);
}

static void trace_one(void)
{
    static const prof_trace_id_t trace = {{1}};
    assert_int_equal(prof_trace_set(&trace), 0);
    prof_trace_clear();
}

// Only what lies behind a long slice is asked about, be it one that was preempted: most requests ask nothing.
static void most_ask_nothing(void (*one)(void))
{
    unsigned asking = 0;
    for (int i = 0; i < REQUESTS; i++) {
        calls = 0;
        one();
        asking += calls != 0;
    }
    assert_true(asking < REQUESTS / 2);
}

static void a_profile_asks_nothing(void **state)
{
    (void)state;
    most_ask_nothing(profile_one);
}

static void a_trace_asks_nothing(void **state)
{
    (void)state;
    most_ask_nothing(trace_one);
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// A request below the window of a switch, after others like it.
static void a_short_profile_has_its_cpu(void **state)
{
    uint64_t truth = 0, told = 0;
    (void)state;
    for (int i = 0; i < REQUESTS; i++) {
        prof_ledger_t ledger = PROF_LEDGER_INIT;
        prof_t *profile = prof_start(NULL);
        uint64_t begin = cpu_ns(), now = begin;
        while (now < begin + SHORT_NS)
            now = cpu_ns();
        assert_int_equal(prof_stop(profile), 0);
        truth += now - begin;
        assert_int_equal(prof_ledger(profile, &ledger), 0);
        told += ledger.cpu_ns;
        prof_free(profile);
    }
    assert_in_range(told, truth - truth / 20, truth + truth / 2); // the calls are in it, too
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_profile_asks_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_asks_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_short_profile_has_its_cpu, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
