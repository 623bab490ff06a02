// SPDX-License-Identifier: MIT
// The room for tables of rows by range is limited: a module that does not fit has none, and others go on to get theirs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

// A second set of tables, with less room: the C library has some thirty thousand rows, this program less than five.
#define GP_TABLE_ROWS      8192
#define gp_table_rows      small_rows
#define gp_table_steps     small_steps
#define gp_row_tables      small_tables
#define gp_row_table_count small_count
#define gp_row_table_find  small_find
#define gp_row_table_want  small_want
#define gp_row_tables_make small_make
#include "unwind/prepare_tables.c"
#include "unwind/row_table.c"
#include "unwind/unwind.h"

static gp_unwind_module_t module_of(uintptr_t pc)
{
    gp_unwind_module_t module;
    assert_true(gp_module_find(pc, &module) >= 0);
    return module;
}

static void test_a_module_that_does_not_fit(void **state)
{
    gp_row_range_t range;
    gp_unwind_module_t library = module_of((uintptr_t)qsort), own = module_of((uintptr_t)small_find);
    (void)state;
    small_want(&library);
    small_make();
    assert_int_equal(small_count, 1);
    assert_int_equal(small_find((uintptr_t)qsort, &range), 0);
    assert_int_equal(rows_used, 0);
    small_want(&library);
    small_want(&own);
    small_make();
    assert_int_equal(small_count, 2); // it is not tried again
    assert_int_not_equal(small_find((uintptr_t)small_find, &range), 0);
    assert_true(rows_used > 0 && rows_used <= GP_TABLE_ROWS);
    assert_int_equal(small_find((uintptr_t)qsort, &range), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_module_that_does_not_fit),
    };
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
