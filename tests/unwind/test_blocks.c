// SPDX-License-Identifier: MIT
// Rows by block of code, and by range of code: whatever the cache or a table gives is the row that is computed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/resolve.h"
#include "unwind/row_cache.h"
#include "unwind/row_table.h"
#include "unwind/unwind.h"

enum { BYTES = 2048 };

static gp_packed_row_t computed[BYTES];

static uintptr_t const starts[] = {(uintptr_t)qsort,   (uintptr_t)printf, (uintptr_t)strtod,
                                   (uintptr_t)realloc, (uintptr_t)memcpy, (uintptr_t)gp_unwind_walk};

static gp_packed_row_t compute(uintptr_t pc)
{
    uint32_t slot, module;
    return gp_resolve(pc, false, &slot, &module);
}

static void compute_all(uintptr_t start)
{
    for (size_t i = 0; i < BYTES; i++)
        computed[i] = compute(start + i);
}

// How many bytes of code have the row of their block; each one must be the row that was computed.
static size_t compare(uintptr_t start)
{
    size_t found = 0;
    gp_packed_row_t row;
    for (size_t i = 0; i < BYTES; i++) {
        if (gp_cache_find(gp_cache_hash_of_block(start + i), &row) == GP_CACHE_SLOTS)
            continue;
        assert_int_equal(row, computed[i]);
        found++;
    }
    return found;
}

static void test_rows_that_handlers_computed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        gp_cache_flush();
        compute_all(starts[i]);
        assert_true(compare(starts[i]) > BYTES / 8);
    }
}

static void test_prepared_functions(void **state)
{
    size_t found = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        compute_all(starts[i]);
        gp_cache_flush();
        gp_unwind_prepare_leaf(starts[i] + 1);
        found += compare(starts[i]);
    }
    assert_true(found >= 8 * GP_CACHE_BLOCK);
}

// A place where coroutines start ends a walk, but no other code of its function does.
static void test_an_entry_is_in_no_block(void **state)
{
    gp_packed_row_t row;
    uintptr_t pc = ((uintptr_t)qsort + GP_CACHE_BLOCK) & ~(uintptr_t)(GP_CACHE_BLOCK - 1);
    (void)state;
    assert_int_equal(gp_unwind_entry_add(pc + 8, pc + 12), 0);
    compute_all(pc);
    gp_unwind_prepare_leaf(pc);
    assert_int_equal(gp_cache_find(gp_cache_hash_of_block(pc), &row), GP_CACHE_SLOTS);
    assert_int_equal(compute(pc + 8), gp_row_special(GP_SPECIAL_END, 0));
    assert_int_not_equal(compute(pc + 12), gp_row_special(GP_SPECIAL_END, 0));
    assert_true(compare(pc) > 0);
}

// Words that name no code of this program's own prepare nothing, and do no harm.
static void test_no_code(void **state)
{
    static const uintptr_t words[] = {0, 1, UINTPTR_MAX, (uintptr_t)1 << 47, (uintptr_t)computed};
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        gp_unwind_prepare_leaf(words[i]);
}

enum { STRIDE = 13 };

typedef struct rows {
    gp_packed_row_t interrupted, returned_to;
} rows_t;

static rows_t rows_at(uintptr_t pc)
{
    uint32_t slot, module;
    return (rows_t){gp_resolve(pc, false, &slot, &module), gp_resolve(pc, true, &slot, &module)};
}

// Count the places in the C library's code, once it has a table. Each one must have the rows from before.
static size_t compare_with_table(const gp_unwind_module_t *module, const rows_t *before)
{
    size_t found = 0;
    gp_row_range_t range;
    for (uintptr_t pc = module->text_lo; pc < module->text_hi; pc += STRIDE, before++) {
        rows_t now = rows_at(pc);
        assert_int_equal(now.interrupted, before->interrupted);
        assert_int_equal(now.returned_to, before->returned_to);
        found += gp_row_table_find(pc, &range) != 0;
    }
    return found;
}

static void test_a_table_says_what_the_module_says(void **state)
{
    gp_unwind_module_t module;
    gp_row_range_t range;
    (void)state;
    assert_true(gp_module_find((uintptr_t)qsort, &module) >= 0);
    size_t count = (module.text_hi - module.text_lo) / STRIDE + 1;
    rows_t *before = calloc(count, sizeof(*before)), *at = before;
    assert_non_null(before);
    assert_int_equal(gp_row_table_find((uintptr_t)qsort, &range), 0);
    for (uintptr_t pc = module.text_lo; pc < module.text_hi; pc += STRIDE)
        *at++ = rows_at(pc);
    gp_cache_flush(); // what was prepared, too, is new then
    gp_unwind_prepare_leaf((uintptr_t)qsort);
    gp_unwind_warm();
    assert_true(compare_with_table(&module, before) > count / 2);
    free(before);
}

// Rows of a range, and its surroundings.
static void test_a_range_ends_where_another_row_begins(void **state)
{
    gp_row_range_t range, next;
    gp_packed_row_t row = gp_row_table_find((uintptr_t)qsort, &range);
    (void)state;
    assert_int_not_equal(row, 0);
    assert_true(range.lo <= (uintptr_t)qsort && (uintptr_t)qsort < range.hi);
    for (uintptr_t pc = range.lo; pc < range.hi; pc++) {
        assert_int_equal(gp_row_table_find(pc, &next), row);
        assert_int_equal(next.lo, range.lo);
        assert_int_equal(next.hi, range.hi);
    }
    gp_row_table_find(range.hi, &next);
    assert_int_equal(next.lo, range.hi);
    gp_row_table_find(range.lo - 1, &next);
    assert_int_equal(next.hi, range.lo);
}

// Where a walk finds the row of an interrupted place in the cache.
static uint32_t cached_at(uintptr_t pc, gp_packed_row_t *row)
{
    uint32_t at = gp_cache_find(gp_cache_hash_of_block(pc), row);
    return at != GP_CACHE_SLOTS ? at : gp_cache_find(gp_cache_hash_of(pc, false), row);
}

static void walk_from(uintptr_t pc)
{
    static uintptr_t words[64];
    uintptr_t frames[2];
    unsigned flags;
    const gp_unwind_regs_t regs = {.pc = pc, .sp = (uintptr_t)words};
    gp_unwind_walk(&regs, (uintptr_t)words, (uintptr_t)(words + 64), frames, 2, &flags);
}

// Once a walk has found it in a table, a place is cached: by its block, or by itself where several rows hold in that.
// The last one of such a block is not, its place is the block's.
static void test_what_a_table_says_is_cached(void **state)
{
    size_t by_itself = 0;
    (void)state;
    gp_cache_flush();
    for (uintptr_t pc = (uintptr_t)printf; pc < (uintptr_t)printf + BYTES; pc++) {
        gp_row_range_t range;
        gp_packed_row_t row = gp_row_table_find(pc, &range), cached = 0;
        if (row == 0 || gp_cache_hash_of(pc, false) == gp_cache_hash_of_block(pc))
            continue;
        walk_from(pc);
        assert_int_not_equal(cached_at(pc, &cached), GP_CACHE_SLOTS);
        assert_int_equal(cached, row);
        by_itself += gp_cache_find(gp_cache_hash_of_block(pc), &cached) == GP_CACHE_SLOTS;
    }
    assert_true(by_itself > 0);
}

// A place where coroutines start, once its module has a table.
static void test_an_entry_is_not_taken_from_a_table(void **state)
{
    gp_row_range_t range;
    uintptr_t pc = (uintptr_t)realloc + 4;
    (void)state;
    assert_int_not_equal(gp_row_table_find(pc, &range), 0);
    assert_int_equal(gp_unwind_entry_add(pc, pc + 4), 0);
    assert_int_equal(compute(pc), gp_row_special(GP_SPECIAL_END, 0));
    assert_int_not_equal(compute(pc + 4), gp_row_special(GP_SPECIAL_END, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_that_handlers_computed),
        cmocka_unit_test(test_prepared_functions),
        cmocka_unit_test(test_an_entry_is_in_no_block),
        cmocka_unit_test(test_no_code),
        cmocka_unit_test(test_a_table_says_what_the_module_says),
        cmocka_unit_test(test_a_range_ends_where_another_row_begins),
        cmocka_unit_test(test_what_a_table_says_is_cached),
        cmocka_unit_test(test_an_entry_is_not_taken_from_a_table),
    };
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
