// SPDX-License-Identifier: MIT
// The call tree: shared prefixes, weights at leaves, growth.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_callers),
        cmocka_unit_test(keeps_all_of_many_stacks),
        cmocka_unit_test(no_stack_is_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
