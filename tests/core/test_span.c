// SPDX-License-Identifier: MIT
// Spans: begin, end, and a listener's news, all on one thread.
#include "span_listener.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "signal/ticks.h"
#include "work.h"

static void test_nothing_is_recorded_unless_wanted(void **state)
{
    (void)state;
    gp_spans_want(GP_SPANS_HEARD, false);
    assert_null(prof_span_begin(PROF_SPAN_REQUEST, "x", NULL));
    assert_int_equal(prof_span_set(NULL, "k", "v"), 0);
    assert_int_equal(prof_span_fail(NULL, "t", "m"), 0);
    assert_int_equal(prof_span_rename(NULL, "x"), 0);
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
    assert_true(inner->mark.span.id == child_id && inner->mark.span.parent_id == root_id);
    assert_true(outer->mark.span.id == root_id && outer->mark.span.parent_id == 0);
    assert_memory_equal(inner->mark.span.trace, outer->mark.span.trace, 16);
    assert_true(outer->mark.span.start <= inner->mark.span.start && inner->mark.span.end <= outer->mark.span.end);
    assert_int_equal(inner->mark.span.flags, GP_SPAN_FAILED);
    assert_int_equal(inner->mark.span.kind, PROF_SPAN_DATABASE);
    assert_int_equal(inner->mark.field_count, 2);
    static const char fields[] = "db.statement\0SELECT 1\0error.type\0SQLITE_BUSY";
    assert_int_equal(inner->mark.fields_len, sizeof(fields));
    assert_memory_equal(inner->text + inner->mark.span.name_len, fields, sizeof(fields));
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
    assert_int_equal(it->mark.span.parent_id, 77);
    assert_int_equal(it->mark.span.flags, GP_SPAN_REMOTE_PARENT);
    assert_memory_equal(it->mark.span.trace, &id, sizeof(id));
    assert_memory_equal(around->mark.span.trace, &now, sizeof(now));
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
    assert_int_equal(find("lost")->mark.span.flags, GP_SPAN_REPAIRED);
    assert_int_equal(find("inner")->mark.span.flags, GP_SPAN_REPAIRED);
    assert_int_equal(find("root")->mark.span.flags, 0);
    assert_int_equal(prof_span_current(), 0);
}

static void test_fields_are_bounded(void **state)
{
    (void)state;
    char text[3000], key[16];
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
    assert_int_equal(it->mark.span.name_len + it->mark.fields_len, GP_SPAN_TEXT_MAX);
    assert_int_equal(strlen(it->text + 4), GP_SPAN_KEY_MAX);
}

// Each row of the table: a number is one in spans of its kind.
static void test_fields_have_their_types(void **state)
{
    enum { PROF_SPAN_ANY = 9 }; // PROF_SPAN_TASK
#define ROW(kind, key, type) {PROF_SPAN_##kind, key, #type},
    static const struct {
        int kind;
        const char *key, *type;
    } rows[] = {PROF_SPAN_FIELDS(ROW)};
#undef ROW
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool is_number = strcmp(rows[i].type, "NUMBER") == 0;
        prof_span_t *span = prof_span_begin((prof_span_kind_t)rows[i].kind, "typed", NULL);
        assert_int_equal(prof_span_set(span, rows[i].key, "204"), 0);
        assert_int_equal(prof_span_set(span, rows[i].key, "-1"), 0);
        assert_int_equal(prof_span_set(span, rows[i].key, ""), is_number ? -EINVAL : 0);
        assert_int_equal(prof_span_set(span, rows[i].key, "20x"), is_number ? -EINVAL : 0);
        assert_int_equal(prof_span_set(span, "of.mine", "20x"), 0);
        prof_span_end(span);
    }
}

// Within a library's call, another one of its kind is part of it.
static void test_one_call_is_one_span(void **state)
{
    prof_span_options_t call = PROF_SPAN_OPTIONS_INIT;
    (void)state;
    call.flags = PROF_SPAN_CLIENT;
    assert_false(gp_span_may_call(PROF_SPAN_DATABASE));
    prof_span_t *mine = prof_span_begin(PROF_SPAN_DATABASE, "mine", NULL);
    assert_true(gp_span_may_call(PROF_SPAN_DATABASE));
    prof_span_t *outer = prof_span_begin(PROF_SPAN_DATABASE, "of a library", &call);
    assert_false(gp_span_may_call(PROF_SPAN_DATABASE));
    assert_true(gp_span_may_call(PROF_SPAN_REST_CALL));
    prof_span_t *task = prof_span_begin(PROF_SPAN_TASK, "of the program", NULL);
    assert_true(gp_span_may_call(PROF_SPAN_DATABASE));
    prof_span_end(task);
    prof_span_end(outer);
    assert_true(gp_span_may_call(PROF_SPAN_DATABASE));
    prof_span_end(mine);
}

static void test_another_name(void **state)
{
    static const char *const names[] = {"GET /servers/{id}", "GET", "the longest of these names by far"};
    char text[3000];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    prof_span_t *span = prof_span_begin(PROF_SPAN_REST_DISPATCH, "GET /servers/7", NULL);
    assert_int_equal(prof_span_set(span, "first", "1"), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(prof_span_rename(span, names[i]), 0);
    assert_int_equal(prof_span_set(span, "second", "2"), 0);
    assert_int_equal(prof_span_rename(span, NULL), -EINVAL);
    assert_int_equal(prof_span_rename(span, ""), -EINVAL);
    prof_span_end(span);
    assert_int_equal(prof_span_rename(span, "over"), -EINVAL);
    const heard_t *it = find(names[2]);
    static const char fields[] = "first\0"
                                 "1\0second\0"
                                 "2";
    assert_int_equal(it->mark.field_count, 2);
    assert_int_equal(it->mark.fields_len, sizeof(fields));
    assert_memory_equal(it->text + it->mark.span.name_len, fields, sizeof(fields));
    span = prof_span_begin(PROF_SPAN_TASK, "full", NULL);
    assert_int_equal(prof_span_set(span, "k", text), 0);
    assert_int_equal(prof_span_rename(span, "fill"), 0);
    assert_int_equal(prof_span_rename(span, "filled"), -ENOSPC);
    prof_span_end(span);
    assert_int_equal(find("fill")->mark.field_count, 1);
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
    assert_int_equal(find("within")->mark.span.parent_id, id);
    assert_int_equal(heard[1].mark.span.id, id);
    assert_int_equal(heard[1].mark.span.flags, GP_SPAN_IMPLICIT);
    assert_memory_equal(heard[1].mark.span.trace, &first, sizeof(first));
    assert_memory_equal(heard[2].mark.span.trace, &second, sizeof(second));
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
    assert_true(find("its child")->mark.span.is_chosen);
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
    assert_true(gp_ticks_to_ns(earlier->mark.span.end - earlier->mark.span.start) >= 500000000u);
    assert_true(later->mark.span.start <= later->mark.span.end);
}

static void test_bad_kinds_and_sizes(void **state)
{
    (void)state;
    prof_span_options_t options = {0}; // of no size: nothing of it counts
    options.parent_id = 5;
    assert_null(prof_span_begin(0, "x", NULL));
    assert_null(prof_span_begin((prof_span_kind_t)GP_SPAN_KIND_COUNT, "x", NULL));
    prof_span_end(prof_span_begin(PROF_SPAN_TASK, NULL, &options));
    assert_int_equal(find("")->mark.span.parent_id, 0);
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

static void near(uint64_t ns, uint64_t expected_ns)
{
    assert_true(ns + 1000 > expected_ns && ns < expected_ns + 1000); // counters of two processors differ a little
}

// Noted before, begun after: the times count from the note.
static void test_noted_first(void **state)
{
    (void)state;
    gp_span_since_t since;
    burn(2000000);
    gp_span_note(&since);
    burn(3000000);
    prof_span_end(gp_span_begin_since(PROF_SPAN_DATABASE, "noted", &since));
    const gp_span_mark_t *mark = &find("noted")->mark;
    assert_int_equal(mark->span.flags & GP_SPAN_NO_TIMES, 0);
    assert_true(mark->span.start == since.ticks);
    near(mark->span.times.slice_ns, gp_ticks_to_ns(mark->span.end - mark->span.start));
    assert_true(mark->span.times.cpu_ns >= 3000000 && mark->span.times.cpu_ns <= mark->span.times.slice_ns);
    assert_int_equal(mark->span.times.switches, 0);
}

// Another coroutine ran in between: that time is not the span's.
static void test_noted_before_a_switch(void **state)
{
    (void)state;
    gp_span_since_t since;
    prof_coro_t *self = prof_coro_current(), *other = prof_coro_create(NULL, 0, "other");
    gp_span_note(&since);
    uint64_t from = gp_ticks();
    prof_coro_switch_hook(other);
    burn(2000000);
    prof_coro_switch_hook(self);
    uint64_t away_ns = gp_ticks_to_ns(gp_ticks() - from);
    prof_span_end(gp_span_begin_since(PROF_SPAN_DATABASE, "noted", &since));
    const gp_span_mark_t *mark = &find("noted")->mark;
    uint64_t wall_ns = gp_ticks_to_ns(mark->span.end - mark->span.start);
    assert_int_equal(mark->span.flags & GP_SPAN_NO_TIMES, 0);
    assert_int_equal(mark->span.times.switches, 1);
    assert_true(mark->span.times.slice_ns >= wall_ns - away_ns && mark->span.times.slice_ns <= wall_ns - 2000000);
    prof_coro_destroy(other);
}

// Begun and ended in one slice: all of its time is its own, and no wait of before.
static void test_in_one_slice(void **state)
{
    (void)state;
    prof_span_t *span = prof_span_begin(PROF_SPAN_CACHE, "short", NULL);
    burn(3000000);
    prof_span_end(span);
    const gp_span_mark_t *mark = &find("short")->mark;
    assert_int_equal(mark->span.flags & GP_SPAN_NO_TIMES, 0);
    near(mark->span.times.slice_ns, gp_ticks_to_ns(mark->span.end - mark->span.start));
    assert_true(mark->span.times.cpu_ns >= 3000000 && mark->span.times.cpu_ns <= mark->span.times.slice_ns);
    assert_true((mark->span.times.switches | mark->span.times.ready_ns | mark->span.times.parked_ns |
                 mark->span.times.waiting_ns) == 0);
}

// Another coroutine ran in between: the span waited for it.
static void test_across_a_switch(void **state)
{
    (void)state;
    prof_coro_t *one = prof_coro_create(NULL, 0, "one"), *other = prof_coro_create(NULL, 0, "other");
    prof_coro_t *self = prof_coro_current();
    prof_coro_switch_hook(one);
    prof_span_t *span = prof_span_begin(PROF_SPAN_CACHE, "across", NULL);
    prof_coro_switch_hook(other);
    burn(2000000);
    prof_coro_switch_hook(one);
    prof_span_end(span);
    prof_coro_switch_hook(self);
    const gp_span_mark_t *mark = &find("across")->mark;
    uint64_t waited_ns = mark->span.times.ready_ns + mark->span.times.parked_ns + mark->span.times.waiting_ns;
    assert_int_equal(mark->span.flags & GP_SPAN_NO_TIMES, 0);
    assert_int_equal(mark->span.times.switches, 1);
    assert_true(waited_ns >= 2000000);
    near(mark->span.times.slice_ns + waited_ns, gp_ticks_to_ns(mark->span.end - mark->span.start));
    prof_coro_destroy(one);
    prof_coro_destroy(other);
}

static void test_noted_on_another(void **state)
{
    (void)state;
    gp_span_since_t since;
    prof_coro_t *self = prof_coro_current(), *other = prof_coro_create(NULL, 0, "other");
    prof_coro_switch_hook(other);
    gp_span_note(&since);
    prof_coro_switch_hook(self);
    prof_span_end(gp_span_begin_since(PROF_SPAN_DATABASE, "noted", &since));
    const gp_span_mark_t *mark = &find("noted")->mark;
    assert_true(mark->span.flags & GP_SPAN_NO_TIMES && mark->span.start == since.ticks);
    assert_true((mark->span.times.slice_ns | mark->span.times.cpu_ns | mark->span.times.switches) == 0);
    prof_coro_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_recorded_unless_wanted, set_up),
        cmocka_unit_test_setup(test_root_and_child, set_up),
        cmocka_unit_test_setup(test_remote_parent_is_a_root, set_up),
        cmocka_unit_test_setup(test_one_that_is_over_is_refused, set_up),
        cmocka_unit_test_setup(test_missing_ends_are_repaired, set_up),
        cmocka_unit_test_setup(test_fields_are_bounded, set_up),
        cmocka_unit_test_setup(test_fields_have_their_types, set_up),
        cmocka_unit_test_setup(test_one_call_is_one_span, set_up),
        cmocka_unit_test_setup(test_another_name, set_up),
        cmocka_unit_test_setup(test_trace_set_is_a_request, set_up),
        cmocka_unit_test_setup(test_trace_set_within_a_span, set_up),
        cmocka_unit_test_setup(test_policy, set_up),
        cmocka_unit_test_setup(test_beginning_in_the_past, set_up),
        cmocka_unit_test_setup(test_bad_kinds_and_sizes, set_up),
        cmocka_unit_test_setup(test_in_one_slice, set_up),
        cmocka_unit_test_setup(test_across_a_switch, set_up),
        cmocka_unit_test_setup(test_noted_first, set_up),
        cmocka_unit_test_setup(test_noted_before_a_switch, set_up),
        cmocka_unit_test_setup(test_noted_on_another, set_up),
        cmocka_unit_test_setup(test_idle, set_up),
    };
    return cmocka_run_group_tests(tests, start, stop_it);
}
