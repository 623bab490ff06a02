// SPDX-License-Identifier: MIT
// Children by fork that are left alone, and counted: a signal handler of the program forks while its own thread is in
// the middle of registering a coroutine; no fork handlers are run; the child gets no collector.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "collect/collector.h"
#include "coro/registry.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"

enum { PATIENCE_S = 60, COROUTINES = 3 * GP_CORO_PIECE };

static __thread bool is_raising;
static unsigned forks, refusals, failures;

// Records are mapped while the registry is locked.
void *__real_gp_own_map_apart(size_t bytes);
void *__wrap_gp_own_map_apart(size_t bytes);

void *__wrap_gp_own_map_apart(size_t bytes)
{
    if (is_raising)
        raise(SIGUSR1);
    return __real_gp_own_map_apart(bytes);
}

int __real_gp_collector_start(void);
int __wrap_gp_collector_start(void);
static bool has_no_collector;

int __wrap_gp_collector_start(void)
{
    return has_no_collector ? -EAGAIN : __real_gp_collector_start();
}

static uint64_t unprofiled(void)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_collector_counters(counters);
    return counters[GP_COUNTER_UNPROFILED_CHILDREN];
}

// The child's findings: 0 it can be profiled, 1 it is refused, 2 neither.
static int try_in_child(void)
{
    alarm(PATIENCE_S);
    prof_t *profile = prof_start(NULL);
    if (profile == NULL)
        return errno == ESRCH ? 1 : 2;
    return prof_stop(profile) == 0 ? 0 : 2;
}

static int fork_once(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_in_child());
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static void fork_in_handler(int number)
{
    (void)number;
    int found = fork_once();
    forks++;
    refusals += found == 1;
    failures += found > 1;
}

static void test_fork_in_handler(void **state)
{
    (void)state;
    alarm(PATIENCE_S);
    prof_t *profile = prof_start(NULL);
    assert_non_null(profile);
    signal(SIGUSR1, fork_in_handler);
    is_raising = true;
    for (uintptr_t i = 0; i < COROUTINES; i++)
        assert_non_null(prof_coro_create((void *)((1ull << 44) + (i << 16)), 1 << 16, NULL));
    is_raising = false;
    assert_true(forks >= 2 && refusals >= 2);
    assert_int_equal(failures, 0);
    assert_int_equal(unprofiled(), refusals);
    assert_int_equal(fork_once(), 0); // any other fork is as ever
    assert_int_equal(unprofiled(), refusals);
    assert_int_equal(prof_stop(profile), 0);
}

static int wait_for(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The child's own children are its own to count.
static void test_without_a_collector(void **state)
{
    (void)state;
    prof_t *profile = prof_start(NULL);
    assert_non_null(profile);
    uint64_t before = unprofiled();
    pid_t pid = fork();
    if (pid == 0) {
        has_no_collector = true;
        if (fork() == 0)
            _exit(0);
        wait(NULL);
        _exit(unprofiled() == 1 ? 0 : 1);
    }
    assert_int_equal(wait_for(pid), 0);
    assert_int_equal(unprofiled(), before);
    has_no_collector = true;
    pid = fork();
    if (pid == 0)
        _exit(0);
    has_no_collector = false;
    assert_int_equal(wait_for(pid), 0);
    assert_int_equal(unprofiled(), before + 1);
    assert_int_equal(prof_stop(profile), 0);
}

// A child that becomes another program, to be profiled where wanted, does not count.
static void test_without_fork_handlers(void **state)
{
    (void)state;
    prof_t *profile = prof_start(NULL);
    assert_non_null(profile);
    uint64_t before = unprofiled();
    pid_t pid = _Fork();
    if (pid == 0)
        _exit(unprofiled() == before + 1 ? 0 : 1);
    assert_int_equal(wait_for(pid), 0);
    assert_int_equal(unprofiled(), before + 1);
    pid = _Fork();
    if (pid == 0) {
        execl("/nowhere", "nowhere", (char *)NULL);
        if (unprofiled() == before + 2)
            execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(wait_for(pid), 0);
    assert_int_equal(unprofiled(), before + 1);
    assert_int_equal(prof_stop(profile), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fork_in_handler),
                                       cmocka_unit_test(test_without_a_collector),
                                       cmocka_unit_test(test_without_fork_handlers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
