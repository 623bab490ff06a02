// SPDX-License-Identifier: MIT
// Rows by block of code: whatever the cache gives for an interrupted pc is the row that is computed for it.
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

// What names no code of this program's own prepares nothing, and does no harm.
static void test_no_code(void **state)
{
    static const uintptr_t words[] = {0, 1, UINTPTR_MAX, (uintptr_t)1 << 47, (uintptr_t)computed};
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        gp_unwind_prepare_leaf(words[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_that_handlers_computed),
        cmocka_unit_test(test_prepared_functions),
        cmocka_unit_test(test_an_entry_is_in_no_block),
        cmocka_unit_test(test_no_code),
    };
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
