// SPDX-License-Identifier: MIT
// Nested ranges of code made disjoint: against a search for the innermost one, and with every allocation failing once.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "symbol/dwarf_unit.h"

enum { FUNCTIONS = 40, FUNCTION_BYTES = 100, END = FUNCTIONS * FUNCTION_BYTES };

// Functions in the reverse order of their addresses, each with others inlined into it, which begin and end together.
static void make_ranges(gp_dwarf_ranges_t *ranges)
{
    for (uint32_t i = FUNCTIONS; i-- > 0;) {
        const uint64_t lo = i * FUNCTION_BYTES;
        const gp_dwarf_range_t nested[] = {
            {lo, lo + 90, 5 * i, 0},          {lo + 60, lo + 80, 5 * i + 1, 1}, {lo + 10, lo + 50, 5 * i + 2, 1},
            {lo + 10, lo + 50, 5 * i + 3, 2}, {lo + 20, lo + 30, 5 * i + 4, 3},
        };
        for (size_t k = 0; k < sizeof(nested) / sizeof(nested[0]); k++)
            assert_int_equal(gp_dwarf_ranges_add(ranges, &nested[k]), 0);
    }
}

// The innermost one that has the address; NULL = none.
static const gp_dwarf_range_t *innermost(const gp_dwarf_ranges_t *ranges, uint64_t address)
{
    const gp_dwarf_range_t *found = NULL;
    for (size_t i = 0; i < ranges->count; i++) {
        const gp_dwarf_range_t *range = &ranges->items[i];
        if (range->lo <= address && address < range->hi && (found == NULL || range->depth >= found->depth))
            found = range;
    }
    return found;
}

static void assert_disjoint(const gp_dwarf_ranges_t *made)
{
    for (size_t i = 0; i < made->count; i++) {
        assert_true(made->items[i].lo < made->items[i].hi);
        assert_true(i == 0 || made->items[i - 1].hi <= made->items[i].lo);
    }
}

// The result is right up to its end.
static void assert_right(const gp_dwarf_ranges_t *made, const gp_dwarf_ranges_t *nested)
{
    uint64_t end = made->count > 0 ? made->items[made->count - 1].hi : 0;
    for (uint64_t address = 0; address < end; address++) {
        const gp_dwarf_range_t *ours = innermost(made, address), *right = innermost(nested, address);
        assert_int_equal(ours != NULL, right != NULL);
        assert_true(ours == NULL || ours->number == right->number);
    }
}

// Without memory fewer are made. Returns how many.
static size_t flatten(const gp_dwarf_ranges_t *nested, long until_failure, bool *failed)
{
    gp_dwarf_ranges_t made = {0};
    memory_held = 0;
    make_ranges(&made);
    memory_until_failure = until_failure;
    int result = gp_dwarf_flatten(&made);
    *failed = memory_until_failure < 0 && until_failure >= 0;
    memory_until_failure = -1;
    assert_int_equal(result, *failed ? -ENOMEM : 0);
    assert_disjoint(&made);
    assert_right(&made, nested);
    size_t count = made.count;
    free(made.items);
    assert_int_equal(memory_held, 0);
    return count;
}

static void test_memory(void **state)
{
    (void)state;
    gp_dwarf_ranges_t nested = {0};
    bool failed;
    make_ranges(&nested);
    size_t all = flatten(&nested, -1, &failed), some = 0;
    assert_true(all > nested.count); // ranges around others are cut: more pieces, more memory
    for (long n = 0;; n++) {
        unsigned before = gp_memory_shortages();
        size_t count = flatten(&nested, n, &failed);
        assert_int_equal(gp_memory_shortages() - before, failed);
        if (!failed) {
            assert_int_equal(count, all);
            assert_true(n >= 3);
            break;
        }
        assert_true(count < all);
        some += count > 0;
    }
    assert_true(some > 0);
    free(nested.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests_name("flatten", tests, NULL, NULL);
}
