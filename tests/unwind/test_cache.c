// SPDX-License-Identifier: MIT
// The row cache: lookups, crowding, flushes against late stores, volatile rows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_and_find),
        cmocka_unit_test(test_crowding),
        cmocka_unit_test(test_late_store),
        cmocka_unit_test(test_keys_do_not_collide),
        cmocka_unit_test(test_module_of_volatile_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
