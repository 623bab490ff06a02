// SPDX-License-Identifier: MIT
// The row cache: lookups, crowding, flushes against late stores, volatile rows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/leaf_rows.h"
#include "unwind/packed_row.h"
#include "unwind/row_cache.h"

static uint64_t hash_of(uintptr_t pc)
{
    return gp_cache_hash(gp_arch_key(pc, true));
}

static gp_packed_row_t row_of(uintptr_t pc)
{
    return gp_row_simple(GP_ROW_SP, (unsigned)(pc % 1000) + 1, (unsigned)(pc % 60), 1);
}

static void test_store_and_find(void **state)
{
    gp_packed_row_t row;
    (void)state;
    gp_cache_flush();
    assert_int_equal(gp_cache_find(hash_of(0x401000), &row), GP_CACHE_SLOTS);
    uint32_t at = gp_cache_store(hash_of(0x401000), row_of(7), 0, gp_cache_epoch());
    assert_int_equal(gp_cache_find(hash_of(0x401000), &row), at);
    assert_int_equal(row, row_of(7));
    assert_int_equal(gp_cache_find(hash_of(0x401001), &row), GP_CACHE_SLOTS);
    gp_cache_flush();
    assert_int_equal(gp_cache_find(hash_of(0x401000), &row), GP_CACHE_SLOTS);
}

// However many rows come, whatever is found is right.
static void test_crowding(void **state)
{
    unsigned found = 0;
    (void)state;
    gp_cache_flush();
    for (uintptr_t pc = 0x7f0000000000; pc < 0x7f0000000000 + 3 * GP_CACHE_SLOTS; pc++)
        gp_cache_store(hash_of(pc), row_of(pc), 0, gp_cache_epoch());
    for (uintptr_t pc = 0x7f0000000000; pc < 0x7f0000000000 + 3 * GP_CACHE_SLOTS; pc++) {
        gp_packed_row_t row;
        if (gp_cache_find(hash_of(pc), &row) != GP_CACHE_SLOTS) {
            assert_int_equal(row, row_of(pc));
            found++;
        }
    }
    assert_true(found > GP_CACHE_SLOTS / 2 && found <= GP_CACHE_SLOTS);
}

static void test_late_store(void **state)
{
    gp_packed_row_t row;
    (void)state;
    unsigned before = gp_cache_epoch();
    gp_cache_flush();
    gp_cache_store(hash_of(0x402000), row_of(9), 0, before);
    assert_int_equal(gp_cache_find(hash_of(0x402000), &row), GP_CACHE_SLOTS);
}

static void test_keys_do_not_collide(void **state)
{
    gp_packed_row_t row;
    (void)state;
    gp_cache_flush();
    gp_cache_store(hash_of(0x403000), row_of(3), 0, gp_cache_epoch());
    for (unsigned bit = 0; bit < GP_ADDR_BITS; bit++) {
        uint64_t other = hash_of(0x403000 ^ (uintptr_t)1 << bit);
        assert_int_equal(gp_cache_find(other, &row), GP_CACHE_SLOTS);
    }
}

static void test_module_of_volatile_row(void **state)
{
    gp_packed_row_t row;
    (void)state;
    gp_cache_flush();
    uint64_t hash = hash_of(0x404000);
    uint32_t at = gp_cache_store(hash, row_of(5) | GP_ROW_VOLATILE, 42, gp_cache_epoch());
    assert_int_equal(gp_cache_find(hash, &row), at);
    assert_true(row & GP_ROW_VOLATILE);
    assert_int_equal(gp_cache_module(at, hash, row), 42);
    gp_cache_store(hash, row_of(6) | GP_ROW_VOLATILE, 43, gp_cache_epoch());
    assert_int_equal(gp_cache_module(at, hash, row), UINT32_MAX); // no longer that row
}

// What is kept for a block holds for all of it, and for nothing beyond the row's range.
static void test_leaf_blocks(void **state)
{
    enum { LO = 0x505030, HI = 0x505a10, PC = 0x505200 };
    unsigned found = 0;
    (void)state;
    gp_cache_flush();
    gp_leaf_store(PC, LO, HI, row_of(9), gp_cache_epoch());
    for (uintptr_t pc = LO - 4096; pc < HI + 4096; pc++) {
        gp_packed_row_t row = gp_leaf_find(pc);
        assert_true(row == 0 || (row == row_of(9) && pc >= LO && pc < HI));
        found += row != 0;
    }
    assert_int_equal(gp_leaf_find(PC), row_of(9));
    assert_true(found >= 512 && found % 64 == 0);
    gp_leaf_store(PC, 0x400000, 0x600000, row_of(8), gp_cache_epoch()); // large blocks
    assert_int_equal(gp_leaf_find(0x505400), row_of(8));
    gp_cache_flush();
    assert_int_equal(gp_leaf_find(PC), 0);
    assert_int_equal(gp_leaf_find(0x505400), 0);
}

// A flush between the reading of a row and its storing takes the row with it.
static void test_late_leaf(void **state)
{
    (void)state;
    unsigned epoch = gp_cache_epoch();
    gp_cache_flush();
    gp_leaf_store(0x606200, 0x606000, 0x606400, row_of(3), epoch);
    assert_int_equal(gp_leaf_find(0x606200), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_and_find),
        cmocka_unit_test(test_crowding),
        cmocka_unit_test(test_late_store),
        cmocka_unit_test(test_keys_do_not_collide),
        cmocka_unit_test(test_module_of_volatile_row),
        cmocka_unit_test(test_leaf_blocks),
        cmocka_unit_test(test_late_leaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
