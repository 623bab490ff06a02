// SPDX-License-Identifier: MIT
// prof_start() and what follows it: totals, states, options, bad input.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../measured.h"
#include "cmocka_all.h"
#include "greenprof/prof.h"
#include "interface.h"
#include "work.h"

static void total_is_the_cpu_time_between(void **state)
{
    (void)state;
    burn(20000000);
    uint64_t before = thread_cpu_ns();
    prof_t *profile = prof_start(NULL);
    assert_non_null(profile);
    work_bounds_t bounds = {.least_ns = burn(200000000)};
    assert_int_equal(prof_stop(profile), 0);
    bounds.most_ns = thread_cpu_ns() - before;
    burn(50000000);
    assert_measured(work_within(prof_total_ns(profile), bounds, 0.005, 300000));
    prof_free(profile);
}

static void resume_adds(void **state)
{
    (void)state;
    uint64_t before = thread_cpu_ns();
    prof_t *profile = prof_start(NULL);
    work_bounds_t bounds = {.least_ns = burn(50000000)};
    assert_int_equal(prof_resume(profile), -EALREADY);
    assert_int_equal(prof_stop(profile), 0);
    uint64_t between = burn(50000000);
    assert_int_equal(prof_resume(profile), 0);
    bounds.least_ns += burn(50000000);
    assert_int_equal(prof_stop(profile), 0);
    bounds.most_ns = thread_cpu_ns() - before - between;
    assert_measured(work_within(prof_total_ns(profile), bounds, 0.005, 300000));
    prof_free(profile);
}

static void wrong_order_is_an_error(void **state)
{
    (void)state;
    prof_t *profile = prof_start(NULL);
    assert_int_equal(prof_stop(profile), 0);
    assert_int_equal(prof_stop(profile), -EALREADY);
    assert_int_equal(prof_stop(NULL), -EINVAL);
    assert_int_equal(prof_resume(NULL), -EINVAL);
    assert_int_equal(prof_dump_stats(NULL, "x.prof"), -EINVAL);
    assert_int_equal(prof_dump(profile, NULL, "x.prof"), -EINVAL);
    assert_int_equal(prof_dump(profile, "no-such-format", "x.prof"), -EINVAL);
    assert_int_equal(prof_dump_stats(profile, NULL), -EINVAL);
    assert_int_equal(prof_total_ns(NULL), 0);
    int not_a_profile = 0;
    assert_int_equal(prof_stop((prof_t *)(void *)&not_a_profile), -EINVAL);
    prof_free(profile);
    assert_int_equal(prof_stop(profile), -EINVAL); // freed
    prof_free(profile);
    prof_free(NULL);
    assert_int_not_equal(access("x.prof", F_OK), 0);
}

static void options_are_checked(void **state)
{
    (void)state;
    prof_options_t options = PROF_OPTIONS_INIT;
    static const unsigned bad_hz[] = {20001, 1000000000};
    for (int i = 0; i < 2; i++) {
        options.frequency_hz = bad_hz[i];
        errno = 0;
        assert_null(prof_start(&options));
        assert_int_equal(errno, EINVAL);
    }
    options.frequency_hz = 0; // the default, as of any field that is zero
    errno = ENOTTY;
    prof_t *defaults = prof_start(&options);
    assert_non_null(defaults);
    assert_int_equal(errno, ENOTTY); // success leaves it alone
    prof_free(defaults);
    options = (prof_options_t)PROF_OPTIONS_INIT;
    options.scope = (prof_scope_t)7;
    assert_null(prof_start(&options));
    assert_int_equal(errno, EINVAL);
    options = (prof_options_t)PROF_OPTIONS_INIT;
    options.size = 0;
    assert_null(prof_start(&options));
    assert_int_equal(errno, EINVAL);
    struct {
        prof_options_t options;
        char later_field[16];
    } newer = {.options = PROF_OPTIONS_INIT};
    newer.options.size = sizeof(newer);
    prof_t *profile = prof_start(&newer.options); // unknown bytes are zero: fine
    assert_non_null(profile);
    prof_free(profile);
    newer.later_field[3] = 1;
    assert_null(prof_start(&newer.options));
    assert_int_equal(errno, E2BIG);
}

static void failed_dump_leaves_nothing(void **state)
{
    (void)state;
    prof_t *profile = prof_start(NULL);
    burn(5000000);
    prof_stop(profile);
    errno = 77;
    assert_int_equal(prof_dump_stats(profile, "/nonexistent/directory/x.prof"), -ENOENT);
    assert_int_equal(errno, 77);
    assert_int_equal(mkdir("dump-target", 0755), 0);
    assert_true(prof_dump_stats(profile, "dump-target") < 0); // a directory
    assert_int_equal(prof_dump_stats(profile, "dump-target/x.prof"), 0);
    assert_int_equal(unlink("dump-target/x.prof"), 0);
    assert_int_equal(rmdir("dump-target"), 0); // fails if anything else was left in it
    prof_free(profile);
}

static bool is_met(const gp_snapshot_t *snapshot, const gp_module_info_t *module)
{
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        if (GP_LOC_MODULE(snapshot->nodes[i].loc) == module->id)
            return true;
    return false;
}

static bool is_there(const gp_snapshot_t *snapshot, uint32_t module)
{
    for (uint32_t i = 0; i < snapshot->module_count; i++)
        if (snapshot->modules[i].id == module)
            return true;
    return false;
}

// A process may have a thousand others.
static void a_snapshot_has_the_modules_of_its_stacks(void **state)
{
    (void)state;
    prof_t *profile = prof_start(NULL);
    burn(50000000);
    assert_int_equal(prof_stop(profile), 0);
    gp_snapshot_t *snapshot = prof_core_interface()->profiles->snapshot(profile);
    assert_non_null(snapshot);
    assert_true(snapshot->module_count > 0);
    for (uint32_t i = 0; i < snapshot->module_count; i++)
        assert_true(snapshot->modules[i].id == 1 || is_met(snapshot, &snapshot->modules[i]));
    for (uint32_t i = 0; i < snapshot->node_count; i++) {
        uint32_t module = GP_LOC_MODULE(snapshot->nodes[i].loc);
        assert_true(module == 0 || module >= GP_MODULE_LANGUAGE || is_there(snapshot, module));
    }
    for (uint32_t i = 1; i < snapshot->module_count; i++)
        assert_true(snapshot->modules[i - 1].id < snapshot->modules[i].id);
    prof_core_interface()->profiles->release(snapshot);
    prof_free(profile);
}

static void *worker(void *used)
{
    *(uint64_t *)used = burn(150000000);
    return NULL;
}

// Microseconds in a file of folded stacks.
static uint64_t folded_us(const char *path)
{
    char line[4096];
    uint64_t sum = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        sum += strtoull(strrchr(line, ' ') + 1, NULL, 10);
    fclose(file);
    return sum;
}

// The dump is the work of another thread, and the slice in progress is in it, of whatever scope.
static void a_running_one_is_dumped(void **state)
{
    (void)state;
    for (int scope = PROF_SCOPE_REQUEST; scope <= PROF_SCOPE_PROCESS; scope++) {
        prof_options_t options = PROF_OPTIONS_INIT;
        options.scope = (prof_scope_t)scope;
        prof_t *profile = prof_start(&options);
        burn(30000000);
        uint64_t before = prof_total_ns(profile);
        assert_int_equal(prof_dump(profile, "folded", "running.folded"), 0);
        uint64_t us = folded_us("running.folded"), after = prof_total_ns(profile);
        assert_in_range(us, before / 1000 - 500, after / 1000 + 500); // rounded, stack by stack
        prof_free(profile);
    }
    assert_int_equal(unlink("running.folded"), 0);
}

static void scopes_see_their_own(void **state)
{
    (void)state;
    prof_options_t options = PROF_OPTIONS_INIT;
    uint64_t before = thread_cpu_ns();
    prof_t *request = prof_start(&options);
    options.scope = PROF_SCOPE_THREAD;
    prof_t *own_thread = prof_start(&options);
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *process = prof_start(&options);
    pthread_t thread;
    uint64_t theirs;
    pthread_create(&thread, NULL, worker, &theirs);
    work_bounds_t mine = {.least_ns = burn(100000000)};
    pthread_join(thread, NULL);
    assert_int_equal(prof_stop(process), 0);
    assert_int_equal(prof_stop(own_thread), 0);
    assert_int_equal(prof_stop(request), 0);
    mine.most_ns = thread_cpu_ns() - before;
    work_bounds_t both = {mine.least_ns + theirs, mine.most_ns + theirs};
    assert_measured(work_within(prof_total_ns(request), mine, 0.01, 1000000));
    assert_measured(work_within(prof_total_ns(own_thread), mine, 0.01, 1000000));
    assert_measured(work_within(prof_total_ns(process), both, 0.01, 2000000));
    prof_free(request);
    prof_free(own_thread);
    prof_free(process);
}

static uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static sem_t sleeper_began, sleeper_over;

static void *sleep_in_profile(void *profile)
{
    *(prof_t **)profile = prof_start(NULL);
    sem_post(&sleeper_began);
    while (sem_wait(&sleeper_over) != 0)
        continue;
    prof_stop(*(prof_t **)profile);
    return NULL;
}

// Asked while its thread sleeps: nothing took the processor from it, so that it is not preempted.
static void a_sleeper_is_blocked_for_other_threads(void **state)
{
    (void)state;
    prof_t *profile = NULL;
    pthread_t thread;
    prof_ledger_t ledger = PROF_LEDGER_INIT;
    sem_init(&sleeper_began, 0, 0);
    sem_init(&sleeper_over, 0, 0);
    uint64_t before = wall_ns();
    pthread_create(&thread, NULL, sleep_in_profile, &profile);
    while (sem_wait(&sleeper_began) != 0)
        continue;
    uint64_t began = wall_ns();
    usleep(300000);
    work_bounds_t asleep = {.least_ns = wall_ns() - began};
    assert_int_equal(prof_ledger(profile, &ledger), 0);
    asleep.most_ns = wall_ns() - before;
    assert_measured(work_within(ledger.blocked_ns, asleep, 0.05, 10000000));
    assert_measured(work_within(ledger.wall_ns, asleep, 0.05, 10000000));
    sem_post(&sleeper_over);
    pthread_join(thread, NULL);
    prof_free(profile);
}

static sem_t deaf_used, deaf_over;

static void *deaf_worker(void *unused)
{
    (void)unused;
    uint64_t all = ~0ull;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof(all));
    uint64_t pending = 0;
    burn(60000000);
    while (!(pending >> (SIGPROF - 1) & 1)) { // until it is found, and a signal sent
        burn(2000000);
        syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    }
    sem_post(&deaf_used);
    sem_wait(&deaf_over);
    return NULL;
}

// The thread bypasses pthread_create() and blocks every signal: its time before it is found is in no profile, either.
static void no_profile_has_what_a_deaf_thread_did(void **state)
{
    (void)state;
    pthread_t thread;
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(dlopen("libc.so.6", RTLD_NOW), "pthread_create");
    sem_init(&deaf_used, 0, 0);
    sem_init(&deaf_over, 0, 0);
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    uint64_t before = thread_cpu_ns();
    prof_t *profile = prof_start(&options);
    assert_int_equal(create(&thread, NULL, deaf_worker, NULL), 0);
    work_bounds_t mine = {.least_ns = burn(100000000)};
    sem_wait(&deaf_used);
    assert_int_equal(prof_stop(profile), 0);
    mine.most_ns = thread_cpu_ns() - before;
    sem_post(&deaf_over);
    pthread_join(thread, NULL);
    assert_measured(work_within(prof_total_ns(profile), mine, 0.005, 1000000));
    prof_free(profile);
}

static void a_thousand_at_once(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static prof_t *profiles[MANY];
    uint64_t used[MANY], sum = 0;
    for (int i = 0; i < MANY; i++) {
        profiles[i] = prof_start(NULL);
        assert_non_null(profiles[i]);
    }
    for (int i = 0; i < MANY; i++) { // the innermost goes last: any order will do
        used[i] = burn(100000);
        assert_int_equal(prof_stop(profiles[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        sum += used[i];
        assert_true(prof_total_ns(profiles[i]) >= sum);
        prof_free(profiles[i]);
    }
}

static void hosts_handler(int number)
{
    (void)number;
}

// In a process of its own: the sampler has not taken the signal yet.
static void host_that_owns_the_signal_keeps_it(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_profile", "--host-owns-signal", (char *)NULL);
        _exit(99);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int with_hosts_handler(void)
{
    struct sigaction now;
    signal(SIGPROF, hosts_handler);
    prof_t *profile = prof_start(NULL); // by another signal
    if (profile == NULL || prof_stop(profile) != 0)
        return 1;
    prof_free(profile);
    sigaction(SIGPROF, NULL, &now);
    return now.sa_handler == hosts_handler ? 0 : 2;
}

typedef struct result {
    int error;
    uint64_t total_ns, used_ns;
} result_t;

static void go_on_in_the_child(prof_t *profile, uint64_t used, result_t *result)
{
    result->used_ns = used + burn(100000000);
    result->error = prof_stop(profile);
    result->total_ns = prof_total_ns(profile);
    _exit(result->error == 0 && prof_dump_stats(profile, "child.prof") == 0 ? 0 : 1);
}

static void child_goes_on(void **state)
{
    (void)state;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    result_t *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(result, MAP_FAILED);
    prof_t *profile = prof_start(&options);
    uint64_t used = burn(50000000);
    pid_t child = fork();
    if (child == 0)
        go_on_in_the_child(profile, used, result);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(result->error, 0);
    assert_int_equal(unlink("child.prof"), 0);
    assert_int_equal(prof_stop(profile), 0);
    // The fork itself and the wait are in both totals.
    print_message("child: total %lu, used %lu; parent: total %lu, used %lu\n", (unsigned long)result->total_ns,
                  (unsigned long)result->used_ns, (unsigned long)prof_total_ns(profile), (unsigned long)used);
    assert_measured(close_to(result->total_ns, result->used_ns, 0.02, 15000000));
    assert_measured(close_to(prof_total_ns(profile), used, 0.05, 20000000));
    prof_free(profile);
    munmap(result, sizeof(*result));
}

static long waits_of_this_thread(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

// Other locks than the collector's answer may be had late, by chance.
static void a_request_does_not_wait_at_its_end(void **state)
{
    (void)state;
    enum { REQUESTS = 200 };
    prof_t *keeps_sampling = prof_start(NULL);
    long before = waits_of_this_thread();
    for (int i = 0; i < REQUESTS; i++) {
        prof_t *profile = prof_start(NULL);
        assert_int_equal(prof_stop(profile), 0);
        prof_free(profile);
    }
    assert_true(waits_of_this_thread() - before < REQUESTS / 2);
    prof_free(keeps_sampling);
}

static uint64_t samples_of(prof_t *profile)
{
    gp_snapshot_t *snapshot = prof_core_interface()->profiles->snapshot(profile);
    uint64_t samples = snapshot != NULL ? snapshot->samples : 0;
    prof_core_interface()->profiles->release(snapshot);
    return samples;
}

// Nor are its last samples lost to a dump, a resume, or a child.
static void its_last_samples_are_waited_for(void **state)
{
    (void)state;
    int status;
    prof_t *first = prof_start(NULL), *second = prof_start(NULL);
    burn(50000000);
    assert_int_equal(prof_stop(second), 0);
    assert_int_equal(prof_resume(second), 0);
    assert_int_equal(prof_stop(second), 0);
    assert_int_equal(prof_stop(first), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(samples_of(first) > 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(samples_of(first) > 0);
    assert_true(samples_of(second) > 0);
    prof_free(first);
    prof_free(second);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--host-owns-signal") == 0)
        return with_hosts_handler();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(total_is_the_cpu_time_between),
        cmocka_unit_test(resume_adds),
        cmocka_unit_test(wrong_order_is_an_error),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_snapshot_has_the_modules_of_its_stacks),
        cmocka_unit_test(failed_dump_leaves_nothing),
        cmocka_unit_test(a_running_one_is_dumped),
        cmocka_unit_test(scopes_see_their_own),
        cmocka_unit_test(a_sleeper_is_blocked_for_other_threads),
        cmocka_unit_test(no_profile_has_what_a_deaf_thread_did),
        cmocka_unit_test(a_thousand_at_once),
        cmocka_unit_test(host_that_owns_the_signal_keeps_it),
        cmocka_unit_test(child_goes_on),
        cmocka_unit_test(a_request_does_not_wait_at_its_end),
        cmocka_unit_test(its_last_samples_are_waited_for),
    };
    return measured_status(cmocka_run_group_tests(tests, NULL, NULL), argv);
}
