// SPDX-License-Identifier: MIT
// Contexts in headers: what is written, and reads as it was; on a coroutine's stack, too.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "headers_to_read.h"

static int read_lines(char *lines, prof_context_t *context)
{
    prof_header_t headers[4];
    size_t count = 0;
    for (char *line = lines, *end; (end = strstr(line, "\r\n")) != NULL; line = end + 2) {
        char *colon = strchr(line, ':');
        assert_true(colon != NULL && colon < end && count < 4);
        *end = *colon = '\0';
        headers[count++] = (prof_header_t){line, colon + 1};
    }
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(headers, count, context);
}

static void reads_what_it_writes(void **state)
{
    (void)state;
    static const char *const formats[] = {"w3c", "osprofiler", "greenprof"};
    for (size_t i = 0; i < 3; i++) {
        char text[PROF_CONTEXT_TEXT_SIZE];
        prof_context_t context, again;
        assert_int_equal(read_states("a=b,c=d", NULL, &context), 0);
        ssize_t len = prof_context_write(formats[i], &context, text, sizeof(text));
        assert_int_equal(len, strlen(text));
        assert_int_equal(prof_context_write(formats[i], &context, text, (size_t)len), -ENOSPC);
        assert_int_equal(prof_context_write(formats[i], &context, text, (size_t)len + 1), len);
        assert_int_equal(read_lines(text, &again), 0);
        assert_trace(&again);
        assert_int_equal(again.parent_id, context.parent_id);
        assert_string_equal(again.tracestate, i == 0 ? "a=b,c=d" : "");
        assert_int_equal(again.flags & PROF_CONTEXT_SIGNED, i > 0 ? PROF_CONTEXT_SIGNED : 0);
    }
}

static void writes_osprofilers_own_bytes(void **state)
{
    (void)state;
    char text[PROF_CONTEXT_TEXT_SIZE], expected[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context;
    assert_int_equal(prof_hmac_keys("SECRET_KEY"), 0);
    assert_int_equal(read_pair(OS_INFO, OS_MAC, &context), 0);
    assert_true(prof_context_write("osprofiler", &context, text, sizeof(text)) > 0);
    sprintf(expected, "X-Trace-Info: %s\r\nX-Trace-HMAC: %s\r\n", OS_INFO, OS_MAC);
    assert_string_equal(text, expected);
    context.parent_id++; // a span of this process
    assert_true(prof_context_write("osprofiler", &context, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_string_equal(context.parent_uuid, "00000000-0000-0000-8444-555555555556");
    context.parent_id = 0; // none: OSProfiler calls the request by the trace's id
    assert_true(prof_context_write("osprofiler", &context, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_string_equal(context.parent_uuid, UUID);
    assert_int_equal(set_keys(NULL), 0);
}

static void refuses_to_write(void **state)
{
    (void)state;
    char text[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context = PROF_CONTEXT_INIT;
    assert_int_equal(prof_context_write("w3c", &context, text, sizeof(text)), -ENOENT);
    assert_int_equal(read_one("traceparent", FIRST, &context), 0);
    assert_int_equal(prof_context_write("b3", &context, text, sizeof(text)), -EINVAL);
    assert_int_equal(prof_context_write(NULL, &context, text, sizeof(text)), -EINVAL);
    strcpy(context.tracestate, "a=b\r\nX-Admin: 1");
    assert_int_equal(prof_context_write("w3c", &context, text, sizeof(text)), -EINVAL);
    memset(context.tracestate, 'a', sizeof(context.tracestate));
    assert_int_equal(prof_context_write("w3c", &context, text, sizeof(text)), -EINVAL);
}

static void writes_that_of_the_coroutine(void **state)
{
    (void)state;
    char text[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context;
    prof_trace_id_t id;
    prof_trace_clear();
    assert_int_equal(prof_context_write("w3c", NULL, text, sizeof(text)), -ENOENT);
    assert_int_equal(prof_trace_parse(TRACE, &id), 0);
    assert_int_equal(prof_trace_set(&id), 0);
    assert_true(prof_context_write("w3c", NULL, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_trace(&context);
    assert_true(context.parent_id != 0); // W3C has no "none"
    assert_true(prof_context_write("greenprof", NULL, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_int_equal(context.parent_id, 0);
    prof_trace_clear();
}

// --- on a coroutine's stack

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 1 << 18 }; // they need more
#else
enum { STACK = 16384 };
#endif
static ucontext_t main_context, small_context;
static char own_value[256];
static int small_results[3];

static void on_small_stack(void)
{
    char text[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context;
    small_results[0] = read_one("X-Greenprof-Context", own_value, &context);
    small_results[1] = read_pair(OS_INFO, OS_MAC, &context);
    small_results[2] = (int)prof_context_write("greenprof", &context, text, sizeof(text));
}

static void small_stacks_are_enough(void **state)
{
    (void)state;
    char *stack = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stack != MAP_FAILED);
    assert_int_equal(mprotect(stack, 4096, PROT_NONE), 0);
    make_own(own_value, "third", 0, fresh_nonce());
    assert_int_equal(getcontext(&small_context), 0);
    small_context.uc_stack.ss_sp = stack + 4096;
    small_context.uc_stack.ss_size = STACK;
    small_context.uc_link = &main_context;
    makecontext(&small_context, on_small_stack, 0);
    assert_int_equal(swapcontext(&main_context, &small_context), 0);
    assert_int_equal(small_results[0], 0);
    assert_int_equal(small_results[1], 0);
    assert_true(small_results[2] > 0);
    munmap(stack, STACK + 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_writes),    cmocka_unit_test(writes_osprofilers_own_bytes),
        cmocka_unit_test(refuses_to_write),        cmocka_unit_test(writes_that_of_the_coroutine),
        cmocka_unit_test(small_stacks_are_enough),
    };
    return cmocka_run_group_tests(tests, set_keys, NULL);
}
