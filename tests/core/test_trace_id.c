// SPDX-License-Identifier: MIT
// Trace ids as text, and the id that coroutines carry.
#include <errno.h>
#include <string.h>

#include "cmocka_all.h"
#include "greenprof/coro.h"
#include "greenprof/trace.h"

static const char hex[] = "4bf92f3577b34da6a3ce929d0e0e4736";
static const char uuid[] = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736";
static const char parent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

static void reads_all_forms(void **state)
{
    (void)state;
    static const char *const good[] = {
        hex,
        uuid,
        parent,
        "4BF92F3577B34DA6A3CE929D0E0E4736",
        "  4bf92f3577b34da6a3ce929d0e0e4736\r\n",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later",
    };
    prof_trace_id_t expected;
    assert_int_equal(prof_trace_parse(hex, &expected), 0);
    assert_int_equal(expected.bytes[0], 0x4b);
    assert_int_equal(expected.bytes[15], 0x36);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        prof_trace_id_t id;
        assert_int_equal(prof_trace_parse(good[i], &id), 0);
        assert_memory_equal(&id, &expected, sizeof(id));
    }
}

static void refuses_everything_else(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "4bf9",
        "4bf92f3577b34da6a3ce929d0e0e473",
        "4bf92f3577b34da6a3ce929d0e0e47366",
        "4bf92f3577b34da6a3ce929d0e0e473g",
        "00000000000000000000000000000000",
        "00000000-0000-0000-0000-000000000000",
        "4bf92f35-77b34da6-a3ce-929d0e0e4736",
        "4bf92f35-77b3-4da6-a3ce-929d0e0e4736-",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        prof_trace_id_t id = {{42}};
        assert_int_equal(prof_trace_parse(bad[i], &id), -EINVAL);
        assert_int_equal(id.bytes[0], 42);
    }
    prof_trace_id_t id;
    assert_int_equal(prof_trace_parse(NULL, &id), -EINVAL);
    assert_int_equal(prof_trace_parse(hex, NULL), -EINVAL);
}

static void writes_all_forms(void **state)
{
    (void)state;
    prof_trace_id_t id;
    char text[PROF_TRACE_TRACEPARENT_SIZE];
    prof_trace_parse(hex, &id);
    prof_trace_to_hex(&id, text);
    assert_string_equal(text, hex);
    prof_trace_to_uuid(&id, text);
    assert_string_equal(text, uuid);
    prof_trace_to_traceparent(&id, 0x00f067aa0ba902b7ull, 1, text);
    assert_string_equal(text, parent);
}

static void belongs_to_the_caller(void **state)
{
    (void)state;
    prof_trace_id_t id, got, none = {{0}};
    prof_trace_parse(hex, &id);
    assert_int_equal(prof_trace_get(&got), -ENOENT);
    assert_int_equal(prof_trace_set(&id), 0);
    assert_int_equal(prof_trace_get(&got), 0);
    assert_memory_equal(&got, &id, sizeof(id));
    assert_int_equal(prof_trace_set(&none), -EINVAL);
    assert_int_equal(prof_trace_set(NULL), -EINVAL);
    assert_int_equal(prof_trace_get(NULL), -EINVAL);
    prof_trace_clear();
    assert_int_equal(prof_trace_get(&got), -ENOENT);
    assert_memory_equal(&got, &none, sizeof(none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_forms),
        cmocka_unit_test(refuses_everything_else),
        cmocka_unit_test(writes_all_forms),
        cmocka_unit_test(belongs_to_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
