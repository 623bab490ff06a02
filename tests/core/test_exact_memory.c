// SPDX-License-Identifier: MIT
// Memory of exact mode: bounded, whatever is loaded, unloaded and called.
#include "cmocka_all.h"
#include "collect/modules.h"
#include "coro/helper_memory.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "exact/exact_site.h"
#include "exact/exact_stack.h"
#include "model/kinds.h"

static size_t mapped;   // bytes, by exact mode and all else
static uint32_t loaded; // module that all code is in now

void *__real_gp_own_map(size_t bytes);
void *__wrap_gp_own_map(size_t bytes);
gp_loc_t __wrap_gp_modules_locate(uintptr_t pc);

void *__wrap_gp_own_map(size_t bytes)
{
    mapped += bytes;
    return __real_gp_own_map(bytes);
}

gp_loc_t __wrap_gp_modules_locate(uintptr_t pc)
{
    return GP_LOC(loaded, pc);
}

// A plugin of instrumented functions that is loaded anew at the same place, for ever.
static void unloaded_sites_leave_no_tables_behind(void **state)
{
    (void)state;
    enum { LOADS = 2000, FUNCTIONS = 4 };
    for (loaded = 1; loaded <= LOADS; loaded++) {
        for (uintptr_t i = 1; i <= FUNCTIONS; i++) {
            const gp_exact_site_t *site = gp_exact_site_add(0x10000 * i, 0x10000 * i + 8, true);
            assert_non_null(site);
            assert_ptr_equal(gp_exact_site_find(0x10000 * i, 0x10000 * i + 8), site);
        }
        const gp_exact_site_t *site = gp_exact_site_find(0x10000, 0x10008);
        assert_true(gp_exact_site_is(site, 0x10000, 0x10008));
        gp_exact_sink.refresh(false); // they are located
        loaded++;
        gp_exact_sink.refresh(true);
        loaded--;
        assert_null(gp_exact_site_find(0x10000, 0x10008));
        assert_false(gp_exact_site_is(site, 0x10000, 0x10008)); // nor is it by what trees have kept
    }
    // 80 bytes a function and site; a table for each load would be 64 MiB.
    assert_in_range(mapped, 1, 4 << 20);
}

static void functions_have_a_bound(void **state)
{
    (void)state;
    const gp_exact_site_t *first = gp_exact_site_of_language(1, 1, NULL), *last = first;
    for (uint32_t number = 2; last != NULL && number < 2 * GP_EXACT_FUNCTIONS_MAX; number++)
        last = gp_exact_site_of_language(number, 1, NULL);
    assert_null(last);
    assert_non_null(first);
    assert_ptr_equal(gp_exact_site_of_language(1, 1, NULL), first); // a known site has its place
    assert_in_range(mapped, 40 << 20, 160 << 20);                   // tables double, and the old ones stay
}

// A deep recursion on each record, and no more of it.
static void a_deep_stack_is_not_kept_for_the_next_coroutine(void **state)
{
    (void)state;
    gp_thread_t *thread = gp_thread_attach();
    assert_non_null(thread);
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
    prof_coro_t *coro = gp_coro_new(&birth);
    gp_exact_stack_t *stack = gp_exact_stack_of(coro, 1, thread);
    uint32_t room = stack->room;
    while (stack->room < 1 << 14)
        assert_true(gp_exact_stack_grow(stack));
    assert_ptr_equal(gp_exact_stack_of(coro, 1, thread), stack);
    assert_int_equal(stack->room, 1 << 14);
    assert_ptr_equal(gp_exact_stack_of(coro, 2, thread), stack);
    assert_int_equal(stack->room, room);
    assert_int_equal(stack->frames[0].cfa, UINTPTR_MAX);
    gp_coro_retire(coro);
}

// An event's question after its caller called another function.
static void all_children_are_met_one_after_the_other(void **state)
{
    (void)state;
    enum { FUNCTIONS = 100 };
    gp_exact_tree_t *tree = gp_exact_tree_new(NULL);
    assert_non_null(tree);
    gp_exact_node_t *parents[] = {&tree->root, gp_exact_tree_get(tree, &tree->root, 1)};
    for (uint32_t function = 1; function <= FUNCTIONS; function++)
        for (unsigned i = 0; i < 2; i++)
            assert_non_null(gp_exact_tree_get(tree, parents[i], function));
    for (unsigned i = 0; i < 2; i++) {
        const gp_exact_node_t *node = parents[i]->last;
        bool met[FUNCTIONS + 1] = {false};
        for (uint32_t count = 1; count <= FUNCTIONS; count++, node = node->next) {
            assert_ptr_equal(node->parent, parents[i]);
            assert_false(met[node->function]);
            met[node->function] = true;
        }
        assert_ptr_equal(node, parents[i]->last);
    }
    gp_exact_tree_free(tree);
}

// Where a tree is full the next call of a function is counted by another's child. The fast way, which takes the node of
// a call that ends for a child of its caller's, does not end it.
static void what_is_counted_elsewhere_ends_slowly(void **state)
{
    (void)state;
    gp_exact_tree_t *tree = gp_exact_tree_new(NULL);
    assert_non_null(tree);
    const gp_exact_site_t site = {.object = &site};
    gp_exact_node_t *caller = gp_exact_tree_get(tree, &tree->root, 1);
    gp_exact_frame_t frames[] = {{.node = caller}, {.node = gp_exact_tree_get(tree, caller, 2), .object = site.object}};
    gp_exact_frame_check(&frames[1]);
    assert_ptr_equal(frames[1].object, site.object);
    uint32_t count = tree->count;
    tree->count = GP_EXACT_NODES_MAX;
    frames[1].node = gp_exact_tree_get(tree, caller, 1);
    tree->count = count;
    assert_ptr_equal(frames[1].node, caller); // as if it had no caller
    gp_exact_frame_check(&frames[1]);
    assert_ptr_equal(frames[1].object, gp_exact_no_site.object);
    gp_exact_tree_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unloaded_sites_leave_no_tables_behind),
        cmocka_unit_test(functions_have_a_bound),
        cmocka_unit_test(a_deep_stack_is_not_kept_for_the_next_coroutine),
        cmocka_unit_test(all_children_are_met_one_after_the_other),
        cmocka_unit_test(what_is_counted_elsewhere_ends_slowly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
