// SPDX-License-Identifier: MIT
// Stacks that no hook announced: records are made of their mappings, and given back when those are gone.
#include <sys/mman.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "collect/found_stack.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "model/kinds.h"
#include "signal/ledger_edges.h"
#include "signal/region.h"

enum { STACK = 64 << 10, MANY = 200, LOOKS = 16 };

static gp_thread_t *thread;
static unsigned live; // of GP_CORO_FOUND

static void count(prof_coro_t *coro, void *unused)
{
    (void)unused;
    live += coro->kind == GP_CORO_FOUND;
}

static unsigned live_count(void)
{
    live = 0;
    gp_coro_each(count, NULL);
    return live;
}

static void look(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        gp_found_stacks_look();
}

// Address space for stacks apart from one another. Slot 2 i + 1 stays as it is.
static char *reserve(void)
{
    char *space = mmap(NULL, 2 * MANY * STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(space, MAP_FAILED);
    return space;
}

static uintptr_t make_stack(char *space, unsigned i)
{
    char *stack = space + 2 * (size_t)i * STACK;
    assert_int_equal(mprotect(stack, STACK, PROT_READ | PROT_WRITE), 0);
    return (uintptr_t)stack;
}

// Where there was no time to look, it is looked up later, as the collector does.
static prof_coro_t *find(uintptr_t sp, uint64_t *id)
{
    prof_coro_t *coro = gp_found_stack(thread, sp, id);
    for (; coro == NULL; coro = gp_found_stack(thread, sp, id))
        usleep(10000);
    return coro;
}

static void one_whose_mapping_is_gone_is_forgotten(void **state)
{
    (void)state;
    char *space = reserve();
    uintptr_t gone = make_stack(space, 0), stays = make_stack(space, 1), half = make_stack(space, 2);
    uint64_t id, stays_id;
    find(gone + 100, &id);
    find(half + 100, &id);
    prof_coro_t *kept = find(stays + 100, &stays_id);
    assert_int_equal(kept->lo, stays);
    assert_int_equal(kept->hi, stays + STACK);
    look(LOOKS);
    assert_int_equal(live_count(), 3);
    munmap((void *)gone, STACK);
    munmap((void *)(half + STACK / 2), STACK / 2);
    look(LOOKS);
    assert_int_equal(live_count(), 1);
    assert_null(gp_region_find(gone + 100, &id));
    assert_ptr_equal(gp_region_find(stays + 100, &id), kept);
    assert_int_equal(id, stays_id);
    find(half + 100, &id); // the rest is known by its new bounds
    assert_int_equal(gp_region_find(half + 100, &id)->hi, half + STACK / 2);
    munmap(space, 2 * MANY * STACK);
    look(LOOKS);
    assert_int_equal(live_count(), 0);
}

// A stack with samples is in use: perhaps by code that unmaps its own end.
static void one_that_runs_stays(void **state)
{
    (void)state;
    char *space = reserve();
    uint64_t id;
    prof_coro_t *coro = find(make_stack(space, 0), &id);
    munmap(space, 2 * MANY * STACK);
    for (unsigned i = 1; i <= LOOKS; i++) {
        gp_ledger_edge_store(&coro->settled, i);
        look(1);
    }
    assert_int_equal(coro->id, id);
    look(LOOKS);
    assert_int_equal(live_count(), 0);
}

// A static runtime that maps a stack for each of its coroutines, for ever.
static void there_are_as_many_as_mappings(void **state)
{
    (void)state;
    char *space = reserve();
    unsigned most = 0;
    for (unsigned i = 0; i < MANY; i++) {
        uint64_t id;
        uintptr_t stack = make_stack(space, i);
        find(stack + 8, &id);
        munmap((void *)stack, STACK);
        look(1);
        unsigned now = live_count();
        most = now > most ? now : most;
    }
    assert_in_range(most, 1, 8);
    munmap(space, 2 * MANY * STACK);
}

// As the kernel lets stacks grow: upper half first.
static void one_that_grows_is_the_same(void **state)
{
    (void)state;
    uint64_t id, later;
    look(LOOKS);
    char *space = reserve();
    for (unsigned i = 0; i < 2; i++) {
        uintptr_t lo = (uintptr_t)space + 2 * (size_t)i * STACK, middle = lo + STACK / 2;
        assert_int_equal(mprotect((void *)middle, STACK / 2, PROT_READ | PROT_WRITE), 0);
        prof_coro_t *coro = i == 0 ? find(middle + 100, &id) : thread->root;
        if (i == 1) { // the thread's own one
            id = thread->root_id;
            atomic_store(&coro->lo, middle);
            atomic_store(&coro->hi, lo + STACK);
        }
        make_stack(space, i);
        assert_ptr_equal(find(lo + 100, &later), coro);
        assert_int_equal(later, id);
        assert_true(coro->lo <= lo && coro->hi == lo + STACK);
        assert_ptr_equal(find(middle + 100, &later), coro);
        assert_int_equal(live_count(), 1);
    }
    munmap(space, 2 * MANY * STACK);
    look(LOOKS);
    assert_int_equal(live_count(), 0);
}

// However low the limit is at first: it may be raised.
static void the_main_stack_may_grow(void **state)
{
    (void)state;
    uintptr_t lo, hi, here = (uintptr_t)__builtin_frame_address(0);
    gp_thread_own_stack(&lo, &hi);
    assert_true(here - lo >= (uintptr_t)100 << 20 && here < hi);
}

int main(void)
{
    thread = gp_thread_attach();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_whose_mapping_is_gone_is_forgotten),
        cmocka_unit_test(one_that_runs_stays),
        cmocka_unit_test(there_are_as_many_as_mappings),
        cmocka_unit_test(the_main_stack_may_grow),
        cmocka_unit_test(one_that_grows_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
