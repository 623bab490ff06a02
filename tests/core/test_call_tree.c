// SPDX-License-Identifier: MIT
// The call tree: shared prefixes, weights at leaves, growth and its bound.
#include "cmocka_all.h"
#include "profile/call_tree.h"

static void shares_callers(void **state)
{
    (void)state;
    gp_call_tree_t tree = {0};
    const gp_loc_t ab[] = {2, 1}, ac[] = {3, 1}, a[] = {1};
    assert_int_equal(gp_call_tree_add(&tree, ab, 2, 10), 0);
    assert_int_equal(gp_call_tree_add(&tree, ac, 2, 20), 0);
    assert_int_equal(gp_call_tree_add(&tree, ab, 2, 5), 0);
    assert_int_equal(gp_call_tree_add(&tree, a, 1, 1), 0);
    assert_int_equal(tree.count, 4); // root, 1, 2, 3
    assert_int_equal(tree.nodes[1].loc, 1);
    assert_int_equal(tree.nodes[1].weight_ns, 1);
    assert_int_equal(tree.nodes[2].loc, 2);
    assert_int_equal(tree.nodes[2].parent, 1);
    assert_int_equal(tree.nodes[2].weight_ns, 15);
    assert_int_equal(tree.nodes[2].samples, 2);
    gp_call_tree_free(&tree);
}

static void keeps_all_of_many_stacks(void **state)
{
    (void)state;
    gp_call_tree_t tree = {0};
    enum { STACKS = 20000, DEPTH = 30 };
    uint64_t sum = 0;
    for (uint64_t i = 0; i < STACKS; i++) {
        gp_loc_t stack[DEPTH];
        for (uint64_t d = 0; d < DEPTH; d++)
            stack[DEPTH - 1 - d] = (i >> (DEPTH - d > 14 ? 14 : DEPTH - d)) * 64 + d;
        assert_int_equal(gp_call_tree_add(&tree, stack, DEPTH, i), 0);
    }
    for (uint32_t node = 1; node < tree.count; node++) {
        assert_true(tree.nodes[node].parent < node);
        sum += tree.nodes[node].weight_ns;
    }
    assert_int_equal(sum, (uint64_t)STACKS * (STACKS - 1) / 2);
    gp_call_tree_free(&tree);
}

static void no_stack_is_the_root(void **state)
{
    (void)state;
    gp_call_tree_t tree = {0};
    assert_int_equal(gp_call_tree_add(&tree, NULL, 0, 7), 0);
    assert_int_equal(tree.nodes[0].weight_ns, 7);
    gp_call_tree_free(&tree);
}

static uint64_t weight_at(const gp_call_tree_t *tree, uint32_t parent, gp_loc_t loc)
{
    for (uint32_t node = 1; node < tree->count; node++)
        if (tree->nodes[node].parent == parent && tree->nodes[node].loc == loc)
            return tree->nodes[node].weight_ns;
    return 0;
}

static uint64_t whole_weight(const gp_call_tree_t *tree)
{
    uint64_t sum = 0;
    for (uint32_t node = 0; node < tree->count; node++)
        sum += tree->nodes[node].weight_ns;
    return sum;
}

// A profile that never stops, of code compiled anew all the time: a new address with every sample.
static void memory_is_bounded(void **state)
{
    (void)state;
    enum { CALLERS = 1000, SAMPLES = 3 * GP_CALL_TREE_NODES_MAX };
    gp_call_tree_t tree = {0};
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const gp_loc_t stack[] = {1000000 + i, 1 + i % CALLERS};
        assert_int_equal(gp_call_tree_add(&tree, stack, 2, 1), 0);
    }
    assert_in_range(tree.count, GP_CALL_TREE_PATHS_MAX, GP_CALL_TREE_PATHS_MAX + CALLERS);
    assert_int_equal(whole_weight(&tree), SAMPLES);
    // Root and callers are no leaves: as many samples are on paths of their own as there are nodes beside them.
    assert_int_equal(tree.crowded, SAMPLES - (GP_CALL_TREE_PATHS_MAX - 1 - CALLERS));
    // Node 1 is the first caller, as is known from shares_callers(): what found no room stands below it.
    assert_in_range(weight_at(&tree, 1, GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_TREE_FULL)), SAMPLES / CALLERS / 2,
                    SAMPLES / CALLERS);
    const gp_loc_t known[] = {1000000, 1};
    uint64_t crowded = tree.crowded;
    assert_int_equal(gp_call_tree_add(&tree, known, 2, 41), 0); // a known path counts as ever
    assert_int_equal(weight_at(&tree, 1, 1000000), 42);
    assert_int_equal(tree.crowded, crowded);
    gp_call_tree_free(&tree);
}

// Also where every caller would have "[tree full]" of its own, and waits below it.
static void waits_are_told_apart_where_there_is_no_room(void **state)
{
    (void)state;
    const gp_loc_t parked = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_PARKED);
    gp_call_tree_t tree = {0};
    for (uint64_t i = 0; i < GP_CALL_TREE_PATHS_MAX; i++)
        assert_int_equal(gp_call_tree_add(&tree, &(gp_loc_t){1 + i}, 1, 1), 0);
    uint64_t before = whole_weight(&tree);
    for (uint64_t i = 0; i < GP_CALL_TREE_PATHS_MAX; i++)
        assert_int_equal(gp_call_tree_add(&tree, (gp_loc_t[]){parked, 7, 1 + i}, 3, 1), 0);
    assert_int_equal(tree.count, GP_CALL_TREE_NODES_MAX - 7); // of the reserve, one for the root's waits
    assert_int_equal(whole_weight(&tree), before + GP_CALL_TREE_PATHS_MAX);
    uint64_t waits = 0;
    for (uint32_t node = 1; node < tree.count; node++)
        waits += tree.nodes[node].loc == parked ? tree.nodes[node].weight_ns : 0;
    assert_int_equal(waits, GP_CALL_TREE_PATHS_MAX);
    gp_call_tree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_callers),
        cmocka_unit_test(keeps_all_of_many_stacks),
        cmocka_unit_test(no_stack_is_the_root),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(waits_are_told_apart_where_there_is_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
