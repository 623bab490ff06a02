// SPDX-License-Identifier: MIT
// prof_dump() over a core that is made up: arguments, errors, small stacks, many at once, after
// fork().
#include "../context.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "interface.h"
#include "symbol/symbolizer.h"

static int the_profile;        // any address will do for a profile
static int snapshots;          // taken and not released
static int taken;              // in all
static int new_modules;        // every snapshot has a module that is new
static unsigned new_addresses; // and so many new addresses in no module
static int thread_error;
static __thread int on_own_thread;

// Code that is compiled anew all the time. Threads: one.
static gp_snapshot_node_t *make_nodes(int number)
{
    static gp_snapshot_node_t *made;
    made = realloc(made, (new_addresses + 1) * sizeof(*made));
    for (unsigned i = 1; i <= new_addresses; i++)
        made[i] = (gp_snapshot_node_t){.loc = GP_LOC(0, 0x7f0000000000 + ((uint64_t)number * new_addresses + i) * 16),
                                       .weight_ns = 10,
                                       .samples = 1};
    return made;
}

static gp_snapshot_t *take_snapshot(prof_t *profile)
{
    static _Thread_local gp_module_info_t module = {.id = 1, .path = "/opt/app/server"};
    static const gp_snapshot_node_t nodes[] = {
        {0},
        {.loc = GP_LOC(1, 0x10), .parent = 0, .weight_ns = 2000, .samples = 2},
    };
    static _Thread_local gp_snapshot_t snapshot = {
        .nodes = nodes,
        .node_count = 2,
        .module_count = 1,
        .total_ns = 5000,
        .sampled_ns = 2000,
        .samples = 2,
        .name = "made up",
    };
    if (profile != (prof_t *)&the_profile || !on_own_thread) {
        errno = EINVAL;
        return NULL;
    }
    int number = __atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST);
    if (new_modules) { // an unseen one: the symbolizer opens a file, its lock held
        module.path = "/proc/self/exe";
        module.build_id_len = sizeof(number);
        memcpy(module.build_id, &number, sizeof(number));
    }
    snapshot.modules = &module;
    snapshot.nodes = new_addresses > 0 ? make_nodes(number) : nodes;
    snapshot.node_count = new_addresses > 0 ? new_addresses + 1 : 2;
    __atomic_add_fetch(&snapshots, 1, __ATOMIC_SEQ_CST);
    return &snapshot;
}

static void release_snapshot(gp_snapshot_t *snapshot)
{
    assert_non_null(snapshot);
    __atomic_sub_fetch(&snapshots, 1, __ATOMIC_SEQ_CST);
}

typedef struct start {
    void *(*run)(void *);
    void *argument;
} start_t;

static void *run_started(void *argument)
{
    start_t start = *(start_t *)argument;
    free(argument);
    on_own_thread = 1;
    return start.run(start.argument);
}

static int start_thread(void *(*run)(void *), void *argument, void *pthread_out)
{
    if (thread_error != 0)
        return thread_error;
    start_t *start = malloc(sizeof(*start));
    *start = (start_t){run, argument};
    return -pthread_create(pthread_out, NULL, run_started, start);
}

static void (*begun)(void); // to be called where a profile begins
static _Atomic int helpers, latest_taken;
static _Atomic bool helper_may_stay = true;

static void watch_begun(void (*call)(void))
{
    begun = call;
}

static int start_helper(void *(*run)(void *), void *argument, void *pthread_out)
{
    atomic_fetch_add(&helpers, 1);
    return start_thread(run, argument, pthread_out);
}

static bool may_stay(void)
{
    return atomic_load(&helper_may_stay);
}

static _Atomic uint32_t looked_up_so_far = 1, latest_since;

static uint32_t looked_up(void)
{
    return atomic_load(&looked_up_so_far);
}

static gp_snapshot_t *take_latest(uint32_t since)
{
    static const gp_module_info_t module = {.id = 7, .path = "/proc/self/exe"};
    static const gp_snapshot_node_t nodes[] = {{.loc = GP_LOC(7, 0x10)}, {.loc = GP_LOC(8, 0x10)}};
    static gp_snapshot_t latest = {.nodes = nodes, .node_count = 2, .modules = &module, .module_count = 1};
    atomic_store(&latest_since, since);
    atomic_fetch_add(&latest_taken, 1);
    __atomic_add_fetch(&snapshots, 1, __ATOMIC_SEQ_CST);
    return &latest;
}

const gp_core_interface_t *prof_core_interface(void)
{
    static const gp_core_profiles_t profiles = {
        .size = sizeof(profiles),
        .snapshot = take_snapshot,
        .release = release_snapshot,
        .on_begin = watch_begun,
        .looked_up = looked_up,
        .latest = take_latest,
    };
    static const gp_core_threads_t threads = {
        .size = sizeof(threads),
        .start_staying = start_thread,
        .start = start_helper,
        .may_stay = may_stay,
    };
    static const gp_core_interface_t interface = {
        .size = sizeof(interface), .profiles = &profiles, .threads = &threads};
    return &interface;
}

static prof_t *profile(void)
{
    return (prof_t *)&the_profile;
}

static char path[] = "/tmp/greenprof-dump-XXXXXX";

static int make_path(void **state)
{
    (void)state;
    strcpy(path + sizeof(path) - 7, "XXXXXX");
    int fd = mkstemp(path);
    return fd >= 0 ? close(fd) : -1;
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

static void expect_folded(const char *file)
{
    char text[64] = "";
    FILE *in = fopen(file, "r");
    assert_non_null(in);
    assert_non_null(fgets(text, sizeof(text), in));
    fclose(in);
    assert_string_equal(text, "server+0x10 5\n");
}

static void test_dump(void **state)
{
    (void)state;
    errno = 1234;
    assert_int_equal(prof_dump(profile(), "folded", path), 0);
    assert_int_equal(errno, 1234);
    expect_folded(path);
    assert_int_equal(prof_dump_stats(profile(), path), 0);
    int fd = open(path, O_RDONLY);
    char first = 0;
    assert_int_equal(read(fd, &first, 1), 1);
    close(fd);
    assert_int_equal(first, '{');
    assert_int_equal(snapshots, 0);
}

static void test_errors(void **state)
{
    (void)state;
    int other;
    errno = 1234;
    assert_int_equal(prof_dump(NULL, "folded", path), -EINVAL);
    assert_int_equal(prof_dump(profile(), NULL, path), -EINVAL);
    assert_int_equal(prof_dump(profile(), "folded", NULL), -EINVAL);
    assert_int_equal(prof_dump(profile(), "no such format", path), -EINVAL);
    assert_int_equal(prof_dump((prof_t *)&other, "folded", path), -EINVAL);
    assert_int_equal(prof_dump(profile(), "folded", "/nonexistent/file"), -ENOENT);
    assert_int_equal(prof_dump(profile(), "folded", "/tmp"), -EISDIR);
    assert_int_equal(prof_dump(profile(), "folded", "/dev/full"), -ENOSPC);
    thread_error = -EAGAIN;
    assert_int_equal(prof_dump(profile(), "folded", path), -EAGAIN);
    thread_error = 0;
    assert_int_equal(errno, 1234);
    assert_int_equal(snapshots, 0);
}

static ucontext_t here, coroutine;
static int coroutine_result;

static void dump_on_coroutine(void)
{
    coroutine_result = prof_dump(profile(), "flamegraph", path);
}

// On 4 KiB with a page without rights below it; sanitizers need more themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_BYTES = 256 * 1024, SANITIZED = 1 };
#else
enum { STACK_BYTES = 4096, SANITIZED = 0 };
#endif

static void test_small_stack(void **state)
{
    (void)state;
    const size_t page = STACK_BYTES;
    char *stack = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(stack + page, page, PROT_READ | PROT_WRITE), 0);
    coroutine_result = 1;
    context_on(&coroutine, stack + page, page, &here);
    makecontext(&coroutine, dump_on_coroutine, 0);
    swapcontext(&here, &coroutine);
    assert_int_equal(coroutine_result, 0);
    munmap(stack, 2 * page);
}

static void *dump_often(void *argument)
{
    char mine[64];
    intptr_t failures = 0;
    snprintf(mine, sizeof(mine), "%s.%d", path, (int)(intptr_t)argument);
    for (int i = 0; i < 20; i++)
        failures += prof_dump(profile(), "folded", i % 2 ? path : mine) != 0;
    unlink(mine);
    return (void *)failures;
}

static void test_many_at_once(void **state)
{
    (void)state;
    pthread_t threads[8];
    for (intptr_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, dump_often, (void *)i), 0);
    for (int i = 0; i < 8; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        assert_null(failures);
    }
    expect_folded(path);
    assert_int_equal(snapshots, 0);
}

static volatile int stop;

static void *dump_until_stopped(void *argument)
{
    while (!stop)
        prof_dump(profile(), "folded", "/dev/null");
    return argument;
}

// A child may dump, whatever its parent's threads were doing at the fork. (A sanitizer's own locks
// do not survive that.)
static void test_after_fork(void **state)
{
    (void)state;
    pthread_t thread;
    stop = SANITIZED;
    new_modules = 1;
    assert_int_equal(pthread_create(&thread, NULL, dump_until_stopped, NULL), 0);
    if (SANITIZED)
        pthread_join(thread, NULL);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        int status = 0;
        if (child == 0) {
            alarm(20); // a dead lock would be the end of it
            _exit(prof_dump(profile(), "folded", "/dev/null") == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    stop = 1;
    if (!SANITIZED)
        pthread_join(thread, NULL);
}

static size_t heap_bytes(void)
{
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

// 40 dumps of 50,000 addresses each: 230 MB of what is kept.
static void test_names_are_not_kept_for_ever(void **state)
{
    (void)state;
    enum { DUMPS = 40 };
    size_t most = 0;
    new_addresses = 50000;
    for (int i = 0; i < DUMPS; i++) {
        assert_int_equal(prof_dump(profile(), "folded", path), 0);
        size_t now = heap_bytes();
        most = now > most ? now : most;
    }
    new_addresses = 0;
    assert_in_range(most, 0, 2 * GP_SYMBOLIZER_KEPT_MAX); // else more than 3 times as much
}

static void wait_for_latest(int times)
{
    while (atomic_load(&latest_taken) < times || __atomic_load_n(&snapshots, __ATOMIC_SEQ_CST) > 0)
        usleep(1000);
}

// A profile that begins has the names of what samples were in read, each once; profiles right after it do nothing; and
// it ends when it is asked to. Not beside AddressSanitizer (dump_names.c).
static void test_names_are_prepared(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    assert_null(begun);
    skip();
#endif
    assert_non_null(begun);
    for (int i = 0; i < 100; i++)
        begun();
    wait_for_latest(1);
    assert_int_equal(atomic_load(&helpers), 1);
    assert_int_equal(atomic_load(&latest_taken), 1);
    assert_int_equal(atomic_load(&latest_since), 0);
    atomic_store(&looked_up_so_far, 5);
    wait_for_latest(2);
    assert_int_equal(atomic_load(&latest_since), 1);
    assert_int_equal(prof_dump(profile(), "folded", path), 0);
    expect_folded(path);
    atomic_store(&helper_may_stay, false);
}

// A module is read aside, once, and answers as one that was read when it was asked for.
static void test_prepared_names_are_the_same(void **state)
{
    gp_symbolizer_t *early = gp_symbolizer_create(), *late = gp_symbolizer_create();
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self));
    (void)state;
    assert_true(len > 0);
    uint32_t module = gp_symbolizer_module(early, self, (size_t)len, NULL, 0);
    assert_int_equal(gp_symbolizer_module(late, self, (size_t)len, NULL, 0), module);
    assert_false(gp_symbolizer_is_prepared(early, module));
    gp_symbolizer_prepare(early, module);
    gp_symbolizer_prepare(early, module);
    gp_symbolizer_prepare(early, GP_SYMBOLIZER_NO_MODULE);
    assert_true(gp_symbolizer_is_prepared(early, module));
    assert_false(gp_symbolizer_is_prepared(late, module));
    for (uint64_t address = 0; address < 0x40000; address += 0x100) {
        const gp_symbol_t *a = gp_symbolizer_resolve(early, module, address);
        const gp_symbol_t *b = gp_symbolizer_resolve(late, module, address);
        assert_string_equal(a->function, b->function);
        assert_string_equal(a->file, b->file);
        assert_int_equal(a->line, b->line);
    }
    gp_symbolizer_destroy(early);
    gp_symbolizer_destroy(late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dump, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_names_are_prepared, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_errors, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_small_stack, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_many_at_once, make_path, remove_path),
        cmocka_unit_test(test_after_fork),
        cmocka_unit_test_setup_teardown(test_names_are_not_kept_for_ever, make_path, remove_path),
        cmocka_unit_test(test_prepared_names_are_the_same),
    };
    return cmocka_run_group_tests_name("dump", tests, NULL, NULL);
}
