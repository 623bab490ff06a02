// SPDX-License-Identifier: MIT
// The record that is shown of a thread: what is in it, and when it is not valid.
#include "cmocka_all.h"

#include <pthread.h>
#include <string.h>

#include "coro/otel_thread_context.h"
#include "coro/registry.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"
#include "trace/context.h"
#include "trace/span.h"

enum { THREADS_MAX = 4 };

// In place of the thread-locals, which end with their threads.
static void *pointers[THREADS_MAX];
static _Atomic int pointer_count;
static __thread int own = -1;

static void **pointer(void)
{
    if (own < 0)
        own = atomic_fetch_add(&pointer_count, 1);
    return &pointers[own];
}

static void read_context(prof_coro_t *coro, uint64_t trace[2], uint64_t *span_id)
{
    gp_trace_of(coro, trace);
    *span_id = gp_span_shown_id(coro);
}

static const gp_otel_thread_source_t source = {.pointer = pointer, .read = read_context};
static prof_t *profile;

static const gp_otel_thread_record_t *shown(void)
{
    return pointers[own];
}

static bool is_valid(void)
{
    return shown() != NULL && shown()->valid == 1;
}

static prof_trace_id_t trace_of(uint8_t number)
{
    return (prof_trace_id_t){{number, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
}

static void assert_shown(const prof_trace_id_t *trace, uint64_t span)
{
    assert_true(is_valid());
    assert_memory_equal(shown()->trace, trace->bytes, 16);
    for (int i = 0; i < 8; i++)
        assert_int_equal(shown()->span[i], span >> (56 - 8 * i) & 0xff);
    assert_int_equal(shown()->flags, 1);
    assert_int_equal(shown()->attributes_bytes, 0);
}

static int start(void **state)
{
    (void)state;
    gp_otel_thread_begin(&source); // nothing samples yet
    profile = prof_start(NULL);
    gp_spans_want(GP_SPANS_SHOWN, true);
    prof_trace_clear();
    return profile == NULL;
}

static int stop_it(void **state)
{
    (void)state;
    prof_free(profile);
    return 0;
}

static void test_trace_and_spans(void **state)
{
    (void)state;
    prof_trace_id_t trace = trace_of(1), other = trace_of(2);
    assert_false(is_valid());
    prof_trace_set(&trace);
    assert_int_not_equal(prof_span_current(), 0);
    assert_shown(&trace, prof_span_current());
    prof_span_t *inner = prof_span_begin(PROF_SPAN_DATABASE, "inner", NULL);
    assert_shown(&trace, prof_span_id(inner));
    prof_span_end(inner);
    assert_shown(&trace, prof_span_current());
    prof_trace_set(&other);
    assert_shown(&other, prof_span_current());
    prof_trace_clear();
    assert_false(is_valid());
}

static bool is_never_chosen(prof_span_kind_t kind, const char *name)
{
    (void)kind;
    (void)name;
    return false;
}

// Consumers' policy has no say in what is shown.
static void test_request_that_no_consumer_gets(void **state)
{
    (void)state;
    gp_span_policy = is_never_chosen;
    prof_span_t *request = prof_span_begin(PROF_SPAN_REQUEST, "request", NULL);
    gp_span_policy = NULL;
    prof_trace_id_t trace;
    assert_int_equal(prof_trace_get(&trace), 0);
    assert_shown(&trace, prof_span_id(request));
    prof_span_end(request);
    assert_false(is_valid());
}

static void test_switches(void **state)
{
    (void)state;
    prof_trace_id_t trace = trace_of(3);
    prof_coro_t *without = prof_coro_create(NULL, 0, "without");
    prof_trace_set(&trace);
    uint64_t span = prof_span_current();
    prof_coro_t *within = prof_coro_create(NULL, 0, "within");
    prof_coro_switch(without);
    assert_false(is_valid());
    prof_coro_switch(within);
    assert_shown(&trace, span);
    prof_coro_switch(NULL);
    assert_shown(&trace, span);
    prof_trace_clear();
    assert_false(is_valid());
    prof_coro_switch(within); // the span is over; it was spawned in it all the same
    assert_shown(&trace, span);
    prof_coro_switch(NULL);
    assert_false(is_valid());
    prof_coro_destroy(within);
    prof_coro_destroy(without);
}

static void test_nothing_is_shown_while_switches_are_not_seen(void **state)
{
    (void)state;
    prof_trace_id_t trace = trace_of(4);
    prof_trace_set(&trace);
    assert_true(is_valid());
    gp_otel_thread_pause();
    assert_false(is_valid());
    prof_span_t *span = prof_span_begin(PROF_SPAN_DATABASE, "unseen", NULL);
    assert_false(is_valid());
    gp_otel_thread_resume();
    prof_span_end(span);
    assert_shown(&trace, prof_span_current());
    prof_trace_clear();
}

static void *show_on_thread(void *argument)
{
    prof_trace_id_t trace = trace_of(5);
    prof_trace_set(&trace);
    assert_true(is_valid());
    *(int *)argument = own;
    return NULL;
}

static void test_thread_takes_its_pointer_back(void **state)
{
    (void)state;
    pthread_t thread;
    int its = -1;
    pthread_create(&thread, NULL, show_on_thread, &its);
    pthread_join(thread, NULL);
    assert_in_range(its, 0, THREADS_MAX - 1);
    assert_null(pointers[its]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_and_spans),
        cmocka_unit_test(test_request_that_no_consumer_gets),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_nothing_is_shown_while_switches_are_not_seen),
        cmocka_unit_test(test_thread_takes_its_pointer_back),
    };
    return cmocka_run_group_tests(tests, start, stop_it);
}
