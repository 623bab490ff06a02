// SPDX-License-Identifier: MIT
// Small numbers for big keys: dense, stable, never reused.
#include "capture/write/intern.h"
#include "cmocka_all.h"

static void numbers_are_dense_and_stable(void **state)
{
    (void)state;
    gp_intern_t table = {0};
    bool is_new;
    for (uint64_t i = 1; i <= 100000; i++) {
        assert_int_equal(gp_intern(&table, i * 977, i ^ 5, &is_new), i);
        assert_true(is_new);
    }
    for (uint64_t i = 1; i <= 100000; i++) {
        assert_int_equal(gp_intern(&table, i * 977, i ^ 5, &is_new), i);
        assert_false(is_new);
    }
    gp_intern_reset(&table);
    assert_int_equal(gp_intern(&table, 1, 1, &is_new), 1);
    gp_intern_reset(&table);
}

static void both_halves_of_the_key_count(void **state)
{
    (void)state;
    gp_intern_t table = {0};
    bool is_new;
    uint32_t a = gp_intern(&table, 1, 2, &is_new), b = gp_intern(&table, 2, 1, &is_new);
    uint32_t c = gp_intern(&table, 1, 3, &is_new);
    assert_true(a != b && b != c && a != c);
    gp_intern_reset(&table);
}

static void bounded_and_never_reused(void **state)
{
    (void)state;
    gp_intern_t table = {0};
    bool is_new;
    uint32_t last = 0;
    for (uint64_t i = 1; i <= 3000000; i++) {
        uint32_t number = gp_intern(&table, i, 0, &is_new);
        assert_true(number == last + 1);
        last = number;
    }
    assert_true(table.mask < 1u << 21);
    gp_intern_reset(&table);
}

static void what_is_taken_back_is_new_again(void **state)
{
    (void)state;
    gp_intern_t table = {0};
    bool is_new;
    for (uint64_t i = 1; i <= 5000; i++) {
        for (int attempt = 0; attempt < 2; attempt++) { // through every size of the table
            assert_int_equal(gp_intern(&table, i, i, &is_new), i);
            assert_true(is_new);
            if (attempt == 0)
                gp_intern_undo(&table, i, i);
        }
    }
    gp_intern_undo(&table, 17, 17); // not the latest
    for (uint64_t i = 1; i <= 5000; i++) {
        assert_int_equal(gp_intern(&table, i, i, &is_new), i);
        assert_false(is_new);
    }
    gp_intern_reset(&table);
}

// After five days of 10,000 traces a second.
static void numbers_end_and_do_not_begin_again(void **state)
{
    (void)state;
    gp_intern_t table = {0};
    bool is_new;
    assert_int_equal(gp_intern(&table, 1, 1, &is_new), 1);
    table.last = UINT32_MAX - 1;
    assert_true(gp_intern(&table, 2, 2, &is_new) == UINT32_MAX);
    for (uint64_t i = 3; i < 5000; i++) {
        assert_int_equal(gp_intern(&table, i, i, &is_new), 0);
        assert_false(is_new);
    }
    assert_int_equal(gp_intern(&table, 1, 1, &is_new), 1);
    assert_true(gp_intern(&table, 2, 2, &is_new) == UINT32_MAX);
    gp_intern_reset(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_dense_and_stable),       cmocka_unit_test(both_halves_of_the_key_count),
        cmocka_unit_test(what_is_taken_back_is_new_again),    cmocka_unit_test(bounded_and_never_reused),
        cmocka_unit_test(numbers_end_and_do_not_begin_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
