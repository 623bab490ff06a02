// SPDX-License-Identifier: MIT
// prof_finish(): another thread writes finished profiles: all of them, with their contents at the end, to their files;
// errors are told once; children and the end of the process.
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../measured.h"
#include "cmocka_all.h"
#include "greenprof/prof.h"
#include "work.h"

enum { PATIENCE_MS = 60000, MANY = 600 }; // more than may wait

static char folder[] = "/tmp/greenprof-finish-XXXXXX";

static const char *place(const char *name)
{
    static char path[sizeof(folder) + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static bool is_there(const char *name)
{
    struct stat status;
    return stat(place(name), &status) == 0 && status.st_size > 0;
}

// The microseconds of a folded file, which is removed.
static uint64_t take_total_us(const char *name)
{
    char line[4096];
    uint64_t sum = 0;
    FILE *in = fopen(place(name), "r");
    assert_non_null(in);
    while (fgets(line, sizeof(line), in) != NULL)
        sum += strtoull(strrchr(line, ' '), NULL, 10);
    fclose(in);
    assert_int_equal(unlink(place(name)), 0);
    return sum;
}

static void what_ran_before_is_in_it(void **state)
{
    (void)state;
    uint64_t before = thread_cpu_ns();
    prof_t *profile = prof_start(NULL);
    work_bounds_t bounds = {.least_ns = burn(200000000)};
    errno = 1234;
    assert_int_equal(prof_finish(profile, "folded", place("ran")), 0);
    assert_int_equal(errno, 1234);
    bounds.most_ns = thread_cpu_ns() - before;
    burn(100000000);
    assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
    assert_measured(work_within(take_total_us("ran") * 1000, bounds, 0.01, 1000000));
    assert_int_equal(prof_stop(profile), -EINVAL); // it is freed
}

static void one_that_is_stopped_already(void **state)
{
    (void)state;
    uint64_t before = thread_cpu_ns();
    prof_t *profile = prof_start(NULL);
    work_bounds_t bounds = {.least_ns = burn(50000000)};
    assert_int_equal(prof_stop(profile), 0);
    bounds.most_ns = thread_cpu_ns() - before;
    assert_int_equal(prof_finish(profile, "folded", place("stopped")), 0);
    assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
    assert_measured(work_within(take_total_us("stopped") * 1000, bounds, 0.01, 1000000));
}

static void none_is_lost(void **state)
{
    char name[32];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        prof_t *profile = prof_start(NULL);
        snprintf(name, sizeof(name), "many.%d", i);
        assert_int_equal(prof_finish(profile, "pstats", place(name)), 0);
    }
    assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many.%d", i);
        assert_int_equal(unlink(place(name)), 0);
    }
}

static void a_relative_path_is_one_of_then(void **state)
{
    (void)state;
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(folder), 0);
    int error = prof_finish(prof_start(NULL), "pstats", "relative");
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_int_equal(error, 0);
    assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
    assert_int_equal(unlink(place("relative")), 0);
}

static void errors_are_told(void **state)
{
    int other;
    (void)state;
    prof_t *profile = prof_start(NULL);
    assert_int_equal(prof_finish(NULL, "pstats", place("error")), -EINVAL);
    assert_int_equal(prof_finish((prof_t *)&other, "pstats", place("error")), -EINVAL);
    assert_int_equal(prof_finish(profile, NULL, place("error")), -EINVAL);
    assert_int_equal(prof_finish(profile, "pstats", NULL), -EINVAL);
    assert_int_equal(prof_finish(profile, "no such format", place("error")), -EINVAL);
    assert_int_equal(prof_finish(profile, "chrome", place("error")), -ENOTSUP);
    assert_int_equal(prof_stop(profile), 0); // it is still ours, and runs
    assert_int_equal(prof_finish(profile, "pstats", place("nowhere/error")), 0);
    assert_int_equal(prof_finish(prof_start(NULL), "pstats", place("good")), 0);
    assert_int_equal(prof_finish_flush(PATIENCE_MS), -ENOENT);
    assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
    assert_int_equal(prof_finish_flush(0), 0);
    assert_int_equal(unlink(place("good")), 0);
}

// Exact mode counts until then, not until the thread comes to it.
static void an_exact_one(void **state)
{
    (void)state;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.mode = PROF_MODE_EXACT;
    assert_int_equal(prof_finish(prof_start(&options), "pstats", place("exact")), 0);
    assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
    assert_int_equal(unlink(place("exact")), 0);
}

static int status_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

// A child has its parent's no more, and may have its own.
static void in_a_child(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(prof_finish(prof_start(NULL), "pstats", place("parent")), 0);
#ifdef __SANITIZE_ADDRESS__ // its allocator may be locked by the thread that writes, and stays so in a child
        assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
#endif
        pid_t child = fork();
        if (child == 0) {
            alarm(60); // a dead lock would be the end of it
            int error = prof_finish_flush(0);
            if (error == 0)
                error = prof_finish(prof_start(NULL), "pstats", place("child"));
            if (error == 0)
                error = prof_finish_flush(PATIENCE_MS);
            _exit(error == 0 ? 0 : 1);
        }
        assert_int_equal(status_of(child), 0);
        assert_int_equal(prof_finish_flush(PATIENCE_MS), 0);
        assert_int_equal(unlink(place("parent")), 0);
        assert_int_equal(unlink(place("child")), 0);
    }
}

// In a process of its own.
static int end_with(const char *path)
{
    prof_t *profile = prof_start(NULL);
    burn(20000000);
    return prof_finish(profile, "pstats", path) == 0 ? 0 : 1;
}

static void the_end_of_the_process_waits(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_finish", place("end"), (char *)NULL);
        _exit(127);
    }
    assert_int_equal(status_of(child), 0);
    assert_true(is_there("end"));
    assert_int_equal(unlink(place("end")), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return end_with(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_before_is_in_it),
        cmocka_unit_test(one_that_is_stopped_already),
        cmocka_unit_test(none_is_lost),
        cmocka_unit_test(a_relative_path_is_one_of_then),
        cmocka_unit_test(errors_are_told),
        cmocka_unit_test(an_exact_one),
        cmocka_unit_test(in_a_child),
        cmocka_unit_test(the_end_of_the_process_waits),
    };
    if (mkdtemp(folder) == NULL)
        return 1;
    int failed = cmocka_run_group_tests_name("finish", tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
