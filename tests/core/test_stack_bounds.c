// SPDX-License-Identifier: MIT
// Samples on stacks that are not where they are said to be: what is not mapped is not read.
#include <sys/mman.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "coro/announce.h"
#include "greenprof/coro.h"
#include "sample_at.h"

#if defined(SAMPLE_AT)

#include "coro/registry.h"
#include "signal/more_stack.h"
#include "signal/region.h"

enum { PAGE = 4096, STACK = 4 * PAGE, PATIENCE = 60000 };

static uintptr_t map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return (uintptr_t)memory;
}

// A coroutine that is just being started: its stack is empty, and what follows it cannot be read.
static void stack_pointer_at_the_end(void **state)
{
    (void)state;
    uintptr_t stack = map(STACK + PAGE), end = stack + STACK;
    uint64_t id;
    mprotect((void *)end, PAGE, PROT_NONE);
    prof_coro_t *coro = prof_coro_create((void *)stack, STACK, "begins");
    prof_coro_switch(coro);
    sample_at(end, 0);
    assert_ptr_equal(gp_thread_self->current, coro);
    bool outside;
    assert_ptr_equal(gp_thread_coro_at(gp_thread_self, end - 1, &id, &outside), coro);
    assert_int_equal(gp_thread_self->counters[GP_COUNTER_OUTSIDE], 0);
    prof_coro_switch(NULL);
    prof_coro_destroy(coro);
    munmap((void *)stack, STACK + PAGE);
}

// The same of a stack that is not known at all.
static void end_of_an_unknown_stack(void **state)
{
    (void)state;
    uintptr_t stack = map(STACK + PAGE), end = stack + STACK;
    munmap((void *)end, PAGE);
    sample_at(end, 0);
    munmap((void *)stack, STACK);
}

// Two stacks side by side are one mapping; then one of them goes.
static void found_stack_that_shrinks(void **state)
{
    (void)state;
    uintptr_t lower = map(2 * STACK), upper = lower + STACK, sp = lower + STACK / 2 + 64;
    uint64_t id;
    prof_coro_t *coro = NULL;
    for (int i = 0; i < PATIENCE && (coro = gp_region_find(sp, &id)) == NULL; i++) {
        sample_at(sp, 0);
        usleep(1000);
    }
    assert_non_null(coro);
    assert_true(coro->lo <= lower && coro->hi >= upper + STACK);
    munmap((void *)upper, STACK);
    sample_at(sp, upper + PAGE);
    sample_at(sp, upper - PAGE);
    munmap((void *)lower, STACK);
}

// An abandoned coroutine of a runtime, and a smaller stack in its place.
static void announced_stack_that_is_gone(void **state)
{
    (void)state;
    uintptr_t stack = map(STACK), sp = stack + PAGE - 64;
    prof_coro_t *coro = gp_coro_announce(stack, stack + STACK, 0, "abandoned");
    munmap((void *)(stack + PAGE), STACK - PAGE);
    sample_at(sp, stack + PAGE);
    sample_at(sp, stack + 2 * PAGE + 64);
    gp_coro_retire(coro);
    munmap((void *)stack, PAGE);
}

// Stacks of the thread beside its own belong to no coroutine: a segment of a split stack, and, in a program with Go, a
// goroutine's stack.
static void stacks_of_the_thread(void **state)
{
    (void)state;
    uintptr_t stack = map(STACK), sp = stack + STACK / 2, go = (uintptr_t)0xc000100000;
    uint64_t id, before = gp_thread_self->counters[GP_COUNTER_OUTSIDE];
    void *memory =
        mmap((void *)go, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    __asm__ volatile("movq %0, %%fs:0x70" ::"r"(stack + 1024));
    sample_at(sp, 0);
    __asm__ volatile("movq %0, %%fs:0x70" ::"r"(0l));
    if (memory != MAP_FAILED) {
        atomic_store(&gp_more_stack_of_go, true);
        sample_at(go + STACK / 2, 0);
        atomic_store(&gp_more_stack_of_go, false);
    }
    usleep(100000);
    assert_int_equal(gp_thread_self->counters[GP_COUNTER_OUTSIDE], before);
    assert_null(gp_region_find(sp, &id));
    assert_null(gp_region_find(go + STACK / 2, &id));
    munmap((void *)stack, STACK);
    munmap((void *)go, STACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stacks_of_the_thread, sample_at_set_up, sample_at_tear_down),
        cmocka_unit_test_setup_teardown(stack_pointer_at_the_end, sample_at_set_up, sample_at_tear_down),
        cmocka_unit_test_setup_teardown(end_of_an_unknown_stack, sample_at_set_up, sample_at_tear_down),
        cmocka_unit_test_setup_teardown(found_stack_that_shrinks, sample_at_set_up, sample_at_tear_down),
        cmocka_unit_test_setup_teardown(announced_stack_that_is_gone, sample_at_set_up, sample_at_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; // how a signal is sent from there is written for x86-64
}

#endif
