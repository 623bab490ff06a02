// SPDX-License-Identifier: MIT
// Spans: what begins, what ends, and what a listener is told. Coroutines are records without stacks of their own, which
// this one thread "switches" between.
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/sink.h"
#include "coro/registry.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"
#include "greenprof/trace.h"
#include "model/span_kind.h"
#include "signal/edge.h"
#include "trace/span.h"

enum { HEARD_MAX = 4096 };

typedef struct heard {
    gp_span_mark_t mark;
    char text[GP_SPAN_TEXT_MAX];
} heard_t;

static heard_t heard[HEARD_MAX];
static size_t heard_count;

static void hear(const gp_span_mark_t *mark)
{
    if (heard_count == HEARD_MAX)
        return;
    heard[heard_count].mark = *mark;
    memcpy(heard[heard_count].text, mark->text, (size_t)mark->name_len + mark->fields_len);
    heard_count++;
}

static const gp_sink_t sink = {.span = hear};
static prof_t *profile;

static size_t listen(void)
{
    gp_collector_sync();
    return heard_count;
}

static const heard_t *find(const char *name)
{
    size_t count = listen();
    for (size_t i = count; i > 0; i--)
        if (heard[i - 1].mark.name_len == strlen(name) &&
            memcmp(heard[i - 1].text, name, heard[i - 1].mark.name_len) == 0)
            return &heard[i - 1];
    fail_msg("no span %s was heard", name);
    return NULL;
}

static int set_up(void **state)
{
    (void)state;
    gp_collector_sync();
    heard_count = 0;
    gp_span_policy = NULL;
    gp_spans_want(GP_SPANS_HEARD, true);
    return 0;
}

static int start(void **state)
{
    (void)state;
    profile = prof_start(NULL);
    assert_non_null(profile);
    gp_sink_add(&sink);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    prof_stop(profile);
    prof_free(profile);
    return 0;
}

static void test_nothing_is_recorded_unless_wanted(void **state)
{
    (void)state;
    gp_spans_want(GP_SPANS_HEARD, false);
    assert_null(prof_span_begin(PROF_SPAN_REQUEST, "x", NULL));
    assert_int_equal(prof_span_set(NULL, "k", "v"), 0);
    assert_int_equal(prof_span_fail(NULL, "t", "m"), 0);
    assert_int_equal(prof_span_id(NULL), 0);
    assert_int_equal(prof_span_end(NULL), 0);
    assert_int_equal(listen(), 0);
}

static void test_root_and_child(void **state)
{
    (void)state;
    prof_trace_id_t id;
    prof_span_t *root = prof_span_begin(PROF_SPAN_REST_DISPATCH, "root", NULL);
    assert_int_equal(prof_trace_get(&id), 0);
    uint64_t root_id = prof_span_id(root);
    assert_true(root_id != 0 && prof_span_current() == root_id);
    prof_span_t *child = prof_span_begin(PROF_SPAN_DATABASE, "child", NULL);
    uint64_t child_id = prof_span_id(child);
    assert_int_equal(prof_span_set(child, "db.statement", "SELECT 1"), 0);
    assert_int_equal(prof_span_fail(child, "SQLITE_BUSY", NULL), 0);
    assert_int_equal(prof_span_end(child), 0);
    assert_int_equal(prof_span_current(), root_id);
    assert_int_equal(prof_span_end(root), 0);
    assert_int_equal(prof_span_current(), 0);
    assert_int_equal(prof_trace_get(&id), -ENOENT);

    const heard_t *inner = find("child"), *outer = find("root");
    assert_true(inner->mark.id == child_id && inner->mark.parent_id == root_id);
    assert_true(outer->mark.id == root_id && outer->mark.parent_id == 0);
    assert_memory_equal(inner->mark.trace, outer->mark.trace, 16);
    assert_true(outer->mark.start <= inner->mark.start && inner->mark.end <= outer->mark.end);
    assert_int_equal(inner->mark.flags, GP_SPAN_FAILED);
    assert_int_equal(inner->mark.kind, PROF_SPAN_DATABASE);
    assert_int_equal(inner->mark.field_count, 2);
    static const char fields[] = "db.statement\0SELECT 1\0error.type\0SQLITE_BUSY";
    assert_int_equal(inner->mark.fields_len, sizeof(fields));
    assert_memory_equal(inner->text + inner->mark.name_len, fields, sizeof(fields));
}

static void test_remote_parent_is_a_root(void **state)
{
    (void)state;
    prof_trace_id_t id = {{9, 8, 7}};
    prof_span_t *outer = prof_span_begin(PROF_SPAN_REQUEST, "outer", NULL);
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.trace = &id;
    options.parent_id = 77;
    options.flags = PROF_SPAN_REMOTE_PARENT;
    prof_span_t *root = prof_span_begin(PROF_SPAN_RPC_DISPATCH, "root", &options);
    prof_trace_id_t now;
    prof_trace_get(&now);
    assert_memory_equal(&now, &id, sizeof(id));
    prof_span_end(root);
    prof_trace_get(&now); // that of the span around it again
    prof_span_end(outer);
    const heard_t *it = find("root"), *around = find("outer");
    assert_int_equal(it->mark.parent_id, 77);
    assert_int_equal(it->mark.flags, GP_SPAN_REMOTE_PARENT);
    assert_memory_equal(it->mark.trace, &id, sizeof(id));
    assert_memory_equal(around->mark.trace, &now, sizeof(now));
}

static void test_one_that_is_over_is_refused(void **state)
{
    (void)state;
    prof_span_t *span = prof_span_begin(PROF_SPAN_REQUEST, "x", NULL);
    assert_int_equal(prof_span_end(span), 0);
    assert_int_equal(prof_span_end(span), -EINVAL);
    assert_int_equal(prof_span_set(span, "k", "v"), -EINVAL);
    assert_int_equal(prof_span_fail(span, "t", "m"), -EINVAL);
    assert_int_equal(prof_span_id(span), 0);
    assert_int_equal(prof_span_end((prof_span_t *)(uintptr_t)0x7ffffffffffffffeu), -EINVAL);
    prof_span_t *next = prof_span_begin(PROF_SPAN_REQUEST, "next", NULL); // in the same slot
    assert_int_equal(prof_span_end(span), -EINVAL);
    assert_int_equal(prof_span_end(next), 0);
    assert_int_equal(listen(), 2);
}

static void test_missing_ends_are_repaired(void **state)
{
    (void)state;
    prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "root", NULL);
    prof_span_begin(PROF_SPAN_TASK, "lost", NULL);
    prof_span_t *inner = prof_span_begin(PROF_SPAN_CACHE, "inner", NULL);
    assert_int_equal(prof_span_end(root), 0);
    assert_int_equal(prof_span_end(inner), -EINVAL);
    assert_int_equal(find("lost")->mark.flags, GP_SPAN_REPAIRED);
    assert_int_equal(find("inner")->mark.flags, GP_SPAN_REPAIRED);
    assert_int_equal(find("root")->mark.flags, 0);
    assert_int_equal(prof_span_current(), 0);
}

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
    assert_true(find("after")->mark.parent_id == root_id);
    const heard_t *it = find("handed");
    assert_int_equal(it->mark.flags, GP_SPAN_NO_TIMES);
    assert_true(it->mark.end_coro_id != 0 && it->mark.end_coro_id != it->mark.coro_id);
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
    assert_true(find("inner")->mark.parent_id == handed_id);
    assert_int_equal(find("inner")->mark.flags | find("root")->mark.flags, 0);
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
    assert_true(it->mark.parent_id == helper.parent_id && child->mark.parent_id == it->mark.id);
    assert_memory_equal(it->mark.trace, &id, sizeof(id));
    assert_memory_equal(child->mark.trace, &id, sizeof(id));
    prof_span_end(root);
    run_helper(&helper); // the parent is over: its trace is not known any more
    it = find("helper");
    assert_true(it->mark.parent_id == helper.parent_id && memcmp(it->mark.trace, &id, sizeof(id)) != 0);
    assert_memory_equal(it->mark.trace, &helper.within, sizeof(id));
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

static void test_fields_are_bounded(void **state)
{
    (void)state;
    char text[3000], key[8];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    prof_span_t *span = prof_span_begin(PROF_SPAN_TASK, text, NULL);
    assert_int_equal(prof_span_set(span, NULL, "v"), -EINVAL);
    assert_int_equal(prof_span_set(span, "", "v"), -EINVAL);
    assert_int_equal(prof_span_set(span, "n", NULL), 0);
    for (int i = 1; i < GP_SPAN_FIELDS_MAX; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(prof_span_set(span, key, "v"), 0);
    }
    assert_int_equal(prof_span_set(span, "more", "v"), -ENOSPC);
    prof_span_end(span);
    span = prof_span_begin(PROF_SPAN_TASK, "long", NULL);
    assert_int_equal(prof_span_set(span, text, text), 0);
    assert_int_equal(prof_span_set(span, "more", "v"), -ENOSPC);
    prof_span_end(span);
    const heard_t *it = find("long");
    assert_int_equal(it->mark.field_count, 1);
    assert_int_equal(it->mark.name_len + it->mark.fields_len, GP_SPAN_TEXT_MAX);
    assert_int_equal(strlen(it->text + 4), GP_SPAN_KEY_MAX);
}

static void test_trace_set_is_a_request(void **state)
{
    (void)state;
    prof_trace_id_t first = {{1}}, second = {{2}};
    prof_trace_set(&first);
    uint64_t id = prof_span_current();
    assert_true(id != 0);
    prof_span_end(prof_span_begin(PROF_SPAN_CACHE, "within", NULL));
    prof_trace_set(&first);
    assert_int_equal(prof_span_current(), id); // it goes on
    prof_trace_set(&second);
    prof_trace_clear();
    assert_int_equal(prof_span_current(), 0);
    assert_int_equal(listen(), 3);
    assert_int_equal(find("within")->mark.parent_id, id);
    assert_int_equal(heard[1].mark.id, id);
    assert_int_equal(heard[1].mark.flags, GP_SPAN_IMPLICIT);
    assert_memory_equal(heard[1].mark.trace, &first, sizeof(first));
    assert_memory_equal(heard[2].mark.trace, &second, sizeof(second));
}

static void test_trace_set_within_a_span(void **state)
{
    (void)state;
    prof_trace_id_t other = {{3}};
    prof_span_t *span = prof_span_begin(PROF_SPAN_REQUEST, "span", NULL);
    prof_trace_set(&other);
    prof_span_end(span);
    assert_int_equal(prof_trace_get(&other), 0); // what was set meanwhile stays
    prof_trace_clear();
    assert_int_equal(listen(), 1);
}

static bool choose_none(prof_span_kind_t kind, const char *name)
{
    (void)kind, (void)name;
    return false;
}

static void test_policy(void **state)
{
    (void)state;
    gp_span_policy = choose_none;
    prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "root", NULL);
    assert_int_equal(prof_span_id(root), 0);
    assert_null(prof_span_begin(PROF_SPAN_CACHE, "child", NULL));
    assert_int_equal(prof_span_set(root, "k", "v"), 0);
    assert_int_equal(prof_span_end(root), 0);
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.flags = PROF_SPAN_PROFILE;
    root = prof_span_begin(PROF_SPAN_REQUEST, "asked for", &options);
    prof_span_end(prof_span_begin(PROF_SPAN_CACHE, "its child", NULL));
    prof_span_end(root);
    assert_int_equal(listen(), 2);
    assert_true(find("its child")->mark.is_chosen);
}

static void test_beginning_in_the_past(void **state)
{
    (void)state;
    struct timespec now;
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    options.start_unix_ns = unix_ns - 500000000u;
    prof_span_end(prof_span_begin(PROF_SPAN_REQUEST, "earlier", &options));
    options.start_unix_ns = unix_ns + 500000000000u;
    prof_span_end(prof_span_begin(PROF_SPAN_REQUEST, "later", &options));
    const heard_t *earlier = find("earlier"), *later = find("later");
    assert_true(gp_ticks_to_ns(earlier->mark.end - earlier->mark.start) >= 500000000u);
    assert_true(later->mark.start <= later->mark.end);
}

static void test_bad_kinds_and_sizes(void **state)
{
    (void)state;
    prof_span_options_t options = {0}; // of no size: nothing of it counts
    options.parent_id = 5;
    assert_null(prof_span_begin(0, "x", NULL));
    assert_null(prof_span_begin(11, "x", NULL));
    prof_span_end(prof_span_begin(PROF_SPAN_TASK, NULL, &options));
    assert_int_equal(find("")->mark.parent_id, 0);
}

static void test_spawned_inherit(void **state)
{
    (void)state;
    static char stacks[2][4096];
    prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "root", NULL);
    uint64_t id = prof_span_id(root);
    prof_coro_t *coro = prof_coro_create(stacks[0], sizeof(stacks[0]), "worker");
    assert_true(gp_edge_load(&coro->span) == (uintptr_t)root);
    prof_span_end(root);
    assert_true(id != 0);
    prof_coro_t *later = prof_coro_create(stacks[1], sizeof(stacks[1]), "later");
    assert_int_equal(gp_edge_load(&later->span), 0);
    prof_coro_destroy(coro);
    prof_coro_destroy(later);
}

static size_t open_count;
static const char *open_name;

static void count_open(const gp_span_mark_t *mark)
{
    assert_true(mark->flags & GP_SPAN_OPEN);
    open_count += mark->name_len == strlen(open_name) && memcmp(mark->text, open_name, mark->name_len) == 0;
}

static size_t open_of(const char *name)
{
    open_name = name;
    open_count = 0;
    gp_drain_enter();
    gp_span_each_open(gp_ticks(), count_open);
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

static void test_idle(void **state)
{
    (void)state;
    prof_trace_id_t id = {{4}};
    prof_trace_set(&id);
    prof_coro_idle();
    assert_int_equal(prof_trace_get(&id), -ENOENT);
    assert_int_equal(prof_span_current(), 0);
    assert_int_equal(listen(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_recorded_unless_wanted, set_up),
        cmocka_unit_test_setup(test_root_and_child, set_up),
        cmocka_unit_test_setup(test_remote_parent_is_a_root, set_up),
        cmocka_unit_test_setup(test_one_that_is_over_is_refused, set_up),
        cmocka_unit_test_setup(test_missing_ends_are_repaired, set_up),
        cmocka_unit_test_setup(test_another_thread_may_end_it, set_up),
        cmocka_unit_test_setup(test_another_thread_ends_one_around, set_up),
        cmocka_unit_test_setup(test_a_parent_of_another_thread, set_up),
        cmocka_unit_test_setup(test_of_two_ends_one_counts, set_up),
        cmocka_unit_test_setup(test_fields_are_bounded, set_up),
        cmocka_unit_test_setup(test_trace_set_is_a_request, set_up),
        cmocka_unit_test_setup(test_trace_set_within_a_span, set_up),
        cmocka_unit_test_setup(test_policy, set_up),
        cmocka_unit_test_setup(test_beginning_in_the_past, set_up),
        cmocka_unit_test_setup(test_bad_kinds_and_sizes, set_up),
        cmocka_unit_test_setup(test_spawned_inherit, set_up),
        cmocka_unit_test_setup(test_open_ones_are_known, set_up),
        cmocka_unit_test_setup(test_a_child_leaves_the_parents_alone, set_up),
        cmocka_unit_test_setup(test_idle, set_up),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
