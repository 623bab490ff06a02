// SPDX-License-Identifier: MIT
// Coroutines announced through coro.h, and ucontext ones: identity, exact time, endings, reuse of stacks, churn.
#include "../context.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../measured.h"
#include "cmocka_all.h"
#include "greenprof/coro.h"
#include "greenprof/trace.h"
#include "work.h"

enum { STACK = 65536 };

static ucontext_t loop;
static prof_coro_t *seen[3];

static void entry(int index)
{
    seen[index] = prof_coro_current();
    burn((uint64_t)(index + 1) * 10000000);
}

static void make(ucontext_t *context, void *stack, size_t size, void (*run)(int), int argument)
{
    context_on(context, stack, size, &loop);
    makecontext(context, (void (*)(void))run, 1, argument);
}

static void current_is_who_runs(void **state)
{
    (void)state;
    static char stacks[3][STACK];
    ucontext_t contexts[3];
    assert_null(prof_coro_current());
    for (int i = 0; i < 3; i++)
        make(&contexts[i], stacks[i], STACK, entry, i);
    for (int i = 0; i < 3; i++)
        swapcontext(&loop, &contexts[i]);
    assert_null(prof_coro_current());
    for (int i = 0; i < 3; i++) {
        assert_non_null(seen[i]);
        assert_ptr_not_equal(seen[i], seen[(i + 1) % 3]);
    }
}

static void returning_from_the_entry_ends_the_account(void **state)
{
    (void)state;
    static char stack[STACK];
    ucontext_t context;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = prof_start(&options);
    make(&context, stack, STACK, entry, 0);
    swapcontext(&loop, &context); // ends, and comes back through uc_link
    uint64_t before = thread_cpu_ns(), root_before = prof_coro_cpu_ns(NULL);
    work_bounds_t used = {.least_ns = burn(30000000)}; // on the thread's own stack again: must not go to the coroutine
    uint64_t root = prof_coro_cpu_ns(NULL) - root_before;
    used.most_ns = thread_cpu_ns() - before;
    assert_measured(work_within(root, used, 0.01, 300000));
    prof_free(profile);
}

static void explicit_switches_are_accounted(void **state)
{
    (void)state;
    // Coroutines without a stack of their own: the switch calls alone say which one runs.
    prof_coro_t *a = prof_coro_create(NULL, 0, "a"), *b = prof_coro_create(NULL, 0, "b");
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = prof_start(&options);
    work_bounds_t used_a = {0}, used_b = {0};
    // The hook's time, a sample of the wait included, is charged to the coroutine before it or to the one after.
    for (int i = 0; i < 50; i++) {
        uint64_t to_a = thread_cpu_ns();
        prof_coro_switch(a);
        used_a.least_ns += burn(1000000);
        uint64_t to_b = thread_cpu_ns();
        prof_coro_switch(b);
        used_a.most_ns += thread_cpu_ns() - to_a;
        used_b.least_ns += burn(500000);
        prof_coro_switch(NULL);
        used_b.most_ns += thread_cpu_ns() - to_b;
    }
    assert_measured(work_within(prof_coro_cpu_ns(a), used_a, 0.01, 600000));
    assert_measured(work_within(prof_coro_cpu_ns(b), used_b, 0.01, 600000));
    assert_int_equal(prof_coro_switches(a), 50);
    assert_int_equal(prof_coro_switches(b), 50);
    prof_coro_destroy(a);
    prof_coro_destroy(b);
    prof_coro_destroy(b); // no longer live: ignored
    prof_coro_switch(b);  // likewise
    prof_coro_switch(NULL);
    prof_free(profile);
}

static void trace_ids_are_inherited_and_private(void **state)
{
    (void)state;
    prof_trace_id_t one, got;
    prof_trace_parse("4bf92f3577b34da6a3ce929d0e0e4736", &one);
    prof_trace_set(&one);
    prof_coro_t *child = prof_coro_create(NULL, 0, "child");
    prof_trace_clear();
    prof_coro_t *later = prof_coro_create(NULL, 0, "later");
    prof_options_t options = PROF_OPTIONS_INIT;
    prof_t *profile = prof_start(&options);
    prof_coro_switch(child);
    assert_int_equal(prof_trace_get(&got), 0);
    assert_memory_equal(&got, &one, sizeof(one));
    prof_coro_switch(later);
    assert_true(prof_trace_get(&got) < 0);
    prof_coro_switch(NULL);
    assert_true(prof_trace_get(&got) < 0);
    prof_free(profile);
    prof_coro_destroy(child);
    prof_coro_destroy(later);
}

static void null_is_accepted_everywhere(void **state)
{
    (void)state;
    prof_coro_switch(NULL);
    prof_coro_ready(NULL);
    prof_coro_destroy(NULL);
    prof_coro_name(NULL, NULL);
    prof_coro_t *coro = prof_coro_create((void *)64, SIZE_MAX, NULL); // wraps around: no region
    assert_non_null(coro);
    prof_coro_name(coro, "a name that is much longer than the forty-seven bytes that are kept of it");
    prof_coro_destroy(coro);
}

static void short_entry(int unused)
{
    (void)unused;
}

static void a_million_short_lives(void **state)
{
    (void)state;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    prof_t *profile = prof_start(NULL);
    ucontext_t context;
    make(&context, stack, STACK, short_entry, 0);
    ucontext_t blank = context;
    for (int i = 0; i < 1000000; i++) { // one pooled stack
        context = blank;
        makecontext(&context, (void (*)(void))short_entry, 1, i);
        swapcontext(&loop, &context);
    }
    assert_int_equal(prof_stop(profile), 0);
    prof_free(profile);
    munmap(stack, STACK);
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_is_who_runs),
        cmocka_unit_test(returning_from_the_entry_ends_the_account),
        cmocka_unit_test(explicit_switches_are_accounted),
        cmocka_unit_test(trace_ids_are_inherited_and_private),
        cmocka_unit_test(null_is_accepted_everywhere),
        cmocka_unit_test(a_million_short_lives),
    };
    return measured_status(cmocka_run_group_tests(tests, NULL, NULL), argv);
}
