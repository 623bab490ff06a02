// SPDX-License-Identifier: MIT
// The cost of hooks: which of their calls are timed, and how the times count beside counts and samples.
#include "collect/cost.h"
#include "coro/hook_cost.h"

#include "cmocka_all.h"

enum { MS = 1000000 };

static void test_every_so_many_calls(void **state)
{
    (void)state;
    unsigned timed = 0;
    for (int i = 0; i < GP_HOOK_TIMED_EVERY * 3; i++)
        timed += gp_hook_cost_begin() != 0;
    assert_int_equal(timed, 3);
}

// A call stands for those between, and for what is not counted elsewhere.
static void test_beyond_switches(void **state)
{
    (void)state;
    gp_hook_cost_in_child();
    gp_hook_cost_note(gp_ticks_from_ns(1000), 1);
    assert_in_range(gp_hook_cost_more_ns(), 968 * GP_HOOK_TIMED_EVERY, 970 * GP_HOOK_TIMED_EVERY);
    gp_hook_cost_in_child();
    gp_hook_cost_note(gp_ticks_from_ns(10), 1);
    assert_true(gp_hook_cost_more_ns() < 0);
    gp_hook_cost_in_child();
    gp_hook_cost_note(gp_ticks_from_ns(1000ull * MS), 0); // was preempted
    assert_true(gp_hook_cost_more_ns() < (int64_t)MS * GP_HOOK_TIMED_EVERY);
    gp_hook_cost_in_child();
    assert_int_equal(gp_hook_cost_more_ns(), 0);
    gp_hook_cost_note_read(1, 0); // less than the clock takes
    assert_int_equal(gp_hook_cost_more_ns(), 0);
    gp_hook_cost_note_read(gp_ticks_from_ns(MS / 100), 0);
    assert_in_range(gp_hook_cost_more_ns(), (MS / 100 - 2000) * GP_HOOK_TIMED_EVERY, MS / 100 * GP_HOOK_TIMED_EVERY);
}

static void test_cost(void **state)
{
    (void)state;
    uint64_t counted = (uint64_t)1000 * GP_HOOK_SWITCH_NS;
    assert_int_equal(gp_cost_hooks_ns(0, 0, 0, 0, 0), 0);
    assert_int_equal(gp_cost_hooks_ns(7, 0, 0, 0, 0), 7);
    assert_int_equal(gp_cost_hooks_ns(0, 1000, 0, 0, 0), counted);
    assert_int_equal(gp_cost_hooks_ns(0, 1000, 70000, 0, 0), counted + 70000);
    // Samples that hit nothing make less of what was only counted, not of what was timed; hits add to either.
    uint64_t switches = 100000000, many = switches * GP_HOOK_SWITCH_NS;
    assert_true(gp_cost_hooks_ns(0, switches, 0, 1000, 1000 * (uint64_t)MS) < many);
    assert_int_equal(gp_cost_hooks_ns(0, switches, 5 * MS, 1000, 1000 * (uint64_t)MS), many + 5 * MS);
    assert_true(gp_cost_hooks_ns(2 * many, switches, 5 * MS, 10000, 10000 * (uint64_t)MS) > many + 5 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_so_many_calls),
        cmocka_unit_test(test_beyond_switches),
        cmocka_unit_test(test_cost),
    };
    gp_ticks_begin();
    gp_ticks_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
