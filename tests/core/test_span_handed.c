// SPDX-License-Identifier: MIT
// Spans ended, inherited or left alone by others than their own thread: threads, coroutines (records without stacks of
// their own), a forked child; and open ones.
#include "span_listener.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coro/registry.h"
#include "greenprof/coro.h"
#include "signal/ledger_edges.h"

static void *end_it(void *span)
{
    return (void *)(intptr_t)prof_span_end(span);
}

static void test_another_thread_may_end_it(void **state)
{
    (void)state;
    pthread_t thread;
    void *result;
    prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "root", NULL);
    uint64_t root_id = prof_span_id(root);
    prof_span_t *handed = prof_span_begin(PROF_SPAN_TASK, "handed", NULL);
    pthread_create(&thread, NULL, end_it, handed);
    pthread_join(thread, &result);
    assert_null(result);
    prof_span_t *child = prof_span_begin(PROF_SPAN_CACHE, "after", NULL);
    assert_non_null(child);
    prof_span_end(child);
    assert_true(prof_span_current() == root_id);
    assert_int_equal(prof_span_end(root), 0);
    prof_trace_id_t id;
    assert_int_equal(prof_trace_get(&id), -ENOENT);
    assert_true(find("after")->mark.span.parent_id == root_id);
    const heard_t *it = find("handed");
    assert_int_equal(it->mark.span.flags, GP_SPAN_NO_TIMES);
    assert_true(it->mark.span.end_coro_id != 0 && it->mark.span.end_coro_id != it->mark.span.coro_id);
}

static void test_another_thread_ends_one_around(void **state)
{
    (void)state;
    pthread_t thread;
    prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "root", NULL);
    prof_span_t *handed = prof_span_begin(PROF_SPAN_TASK, "handed", NULL);
    prof_span_t *inner = prof_span_begin(PROF_SPAN_CACHE, "inner", NULL);
    uint64_t root_id = prof_span_id(root), handed_id = prof_span_id(handed);
    pthread_create(&thread, NULL, end_it, handed);
    pthread_join(thread, NULL);
    assert_int_equal(prof_span_end(inner), 0);
    assert_true(prof_span_current() == root_id);
    assert_int_equal(prof_span_end(root), 0);
    assert_int_equal(prof_span_current(), 0);
    assert_true(find("inner")->mark.span.parent_id == handed_id);
    assert_int_equal(find("inner")->mark.span.flags | find("root")->mark.span.flags, 0);
}

typedef struct helper { // works for a span of another thread
    uint64_t parent_id;
    prof_trace_id_t within;
    int after; // what prof_trace_get() returned then
} helper_t;

static void *help(void *argument)
{
    helper_t *helper = argument;
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.parent_id = helper->parent_id;
    prof_span_t *span = prof_span_begin(PROF_SPAN_NATIVE_CALL, "helper", &options);
    prof_span_end(prof_span_begin(PROF_SPAN_CACHE, "its child", NULL));
    prof_trace_get(&helper->within);
    prof_span_end(span);
    prof_trace_id_t id;
    helper->after = prof_trace_get(&id);
    return NULL;
}

static void run_helper(helper_t *helper)
{
    pthread_t thread;
    pthread_create(&thread, NULL, help, helper);
    pthread_join(thread, NULL);
    assert_int_equal(helper->after, -ENOENT);
}

static void test_a_parent_of_another_thread(void **state)
{
    (void)state;
    prof_trace_id_t id = {{5, 6}};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.trace = &id;
    prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "root", &options);
    helper_t helper = {.parent_id = prof_span_id(root)};
    run_helper(&helper);
    assert_memory_equal(&helper.within, &id, sizeof(id));
    const heard_t *it = find("helper"), *child = find("its child");
    assert_true(it->mark.span.parent_id == helper.parent_id && child->mark.span.parent_id == it->mark.span.id);
    assert_memory_equal(it->mark.span.trace, &id, sizeof(id));
    assert_memory_equal(child->mark.span.trace, &id, sizeof(id));
    prof_span_end(root);
    for (unsigned i = 0; i < 100; i++) // of other traces, in the same slots
        prof_span_end(prof_span_begin(PROF_SPAN_TASK, "other", NULL));
    run_helper(&helper); // a parent that is over is still the parent
    it = find("helper");
    assert_true(it->mark.span.parent_id == helper.parent_id);
    assert_memory_equal(it->mark.span.trace, &id, sizeof(id));
    assert_memory_equal(&helper.within, &id, sizeof(id));
    helper.parent_id = 0x123456789abcdef; // of nobody: a trace of its own
    run_helper(&helper);
    it = find("helper");
    assert_true(it->mark.span.parent_id == helper.parent_id && memcmp(it->mark.span.trace, &id, sizeof(id)) != 0);
    assert_memory_equal(it->mark.span.trace, &helper.within, sizeof(id));
}

enum { RACES = 200 };

static void *end_all(void *spans)
{
    size_t won = 0;
    for (int i = 0; i < RACES; i++)
        won += prof_span_end(((prof_span_t **)spans)[i]) == 0;
    return (void *)won;
}

static void test_of_two_ends_one_counts(void **state)
{
    (void)state;
    static prof_span_t *spans[RACES];
    pthread_t threads[2];
    size_t won = 0;
    for (int i = 0; i < RACES; i++) {
        prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
        options.flags = PROF_SPAN_REMOTE_PARENT;
        spans[i] = prof_span_begin(PROF_SPAN_TASK, "raced", &options);
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, end_all, spans);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        won += (size_t)result;
    }
    assert_int_equal(won, RACES);
    assert_int_equal(listen(), RACES);
    assert_int_equal(prof_span_current(), 0);
    prof_trace_clear();
}

static void test_spawned_inherit(void **state)
{
    (void)state;
    static char stacks[2][4096];
    prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "root", NULL);
    uint64_t id = prof_span_id(root);
    prof_coro_t *coro = prof_coro_create(stacks[0], sizeof(stacks[0]), "worker");
    assert_true(gp_ledger_edge_load(&gp_coro_context(coro)->span) == (uintptr_t)root);
    prof_span_end(root);
    assert_true(id != 0);
    prof_coro_t *later = prof_coro_create(stacks[1], sizeof(stacks[1]), "later");
    assert_int_equal(gp_ledger_edge_load(&gp_coro_context(later)->span), 0);
    prof_coro_destroy(coro);
    prof_coro_destroy(later);
}

static size_t open_count;
static const char *open_name;

static void count_open(void *unused, const gp_span_mark_t *mark)
{
    (void)unused;
    assert_true(mark->span.flags & GP_SPAN_OPEN);
    open_count += mark->span.name_len == strlen(open_name) && memcmp(mark->text, open_name, mark->span.name_len) == 0;
}

static size_t open_of(const char *name)
{
    open_name = name;
    open_count = 0;
    gp_drain_enter();
    gp_span_each_open(gp_ticks(), count_open, NULL);
    gp_drain_leave();
    return open_count;
}

static void test_open_ones_are_known(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static prof_span_t *spans[MANY];
    for (int i = 0; i < MANY; i++)
        spans[i] = prof_span_begin(PROF_SPAN_TASK, "open", NULL);
    assert_int_equal(open_of("open"), MANY);
    prof_span_end(spans[0]);
    assert_int_equal(open_of("open"), 0);
    assert_int_equal(listen(), MANY);
}

static void test_a_child_leaves_the_parents_alone(void **state)
{
    (void)state;
    prof_span_t *span = prof_span_begin(PROF_SPAN_REQUEST, "parent's", NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_of("parent's") == 0 && prof_span_end(span) == 0 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(open_of("parent's"), 1);
    prof_span_end(span);
    assert_int_equal(listen(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_another_thread_may_end_it, set_up),
        cmocka_unit_test_setup(test_another_thread_ends_one_around, set_up),
        cmocka_unit_test_setup(test_a_parent_of_another_thread, set_up),
        cmocka_unit_test_setup(test_of_two_ends_one_counts, set_up),
        cmocka_unit_test_setup(test_spawned_inherit, set_up),
        cmocka_unit_test_setup(test_open_ones_are_known, set_up),
        cmocka_unit_test_setup(test_a_child_leaves_the_parents_alone, set_up),
    };
    return cmocka_run_group_tests(tests, start, stop_it);
}
