// SPDX-License-Identifier: MIT
// Windows and rests, simulated: what is taken, over a minute, and how long they are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/pause_plan.h"

#define STEP_NS 10000000u // of the simulation, and no look comes sooner

static const double MAY = 0.01; // of the program's CPU time

typedef struct load {
    double base;         // CPU time of the program, of each second
    double hooks, other; // of that: greenprof's part while it records
    double resting;      // and while it does not
    double debt_s;       // seconds of the budget that were taken too much before
} load_t;

typedef struct outcome {
    double share, longest_window_s, longest_rest_s;
    unsigned rests;
} outcome_t;

static double later(double a, double b)
{
    return a > b ? a : b;
}

static void follow(const gp_duty_t *duty, uint64_t now_ns, gp_duty_phase_t *before, uint64_t *since_ns, outcome_t *out)
{
    if (duty->phase == *before || duty->phase == GP_DUTY_ENDS)
        return;
    double lasted_s = (double)(now_ns - *since_ns) / 1e9;
    if (duty->phase == GP_DUTY_RESTS)
        out->longest_window_s = later(out->longest_window_s, lasted_s);
    else
        out->longest_rest_s = later(out->longest_rest_s, lasted_s);
    out->rests += duty->phase == GP_DUTY_RESTS;
    *since_ns = now_ns;
    *before = duty->phase;
}

// A minute of it, after `skip_s`.
static outcome_t simulate(const load_t *load, unsigned skip_s)
{
    gp_duty_t duty = {0};
    gp_duty_phase_t before = GP_DUTY_RECORDS;
    outcome_t out = {0};
    double credit_ns = -load->debt_s * MAY * load->base * 1e9, cost_ns = 0, base_ns = 0;
    uint64_t begin_ns = 1000000000u, since_ns = begin_ns, look_ns = 0;
    for (uint64_t now_ns = begin_ns; now_ns < begin_ns + (60 + skip_s) * 1000000000ull; now_ns += STEP_NS) {
        bool rests = duty.phase == GP_DUTY_RESTS;
        double took_ns = load->base * (rests ? load->resting : load->hooks + load->other) * STEP_NS;
        double program_ns = load->base * STEP_NS;
        credit_ns += MAY * program_ns - took_ns;
        if (now_ns >= begin_ns + skip_s * 1000000000ull) {
            cost_ns += took_ns;
            base_ns += program_ns;
        }
        if (now_ns < look_ns)
            continue;
        gp_duty_look_t look = {
            .now_ns = now_ns,
            .is_last_resort = true,
            .credit_ns = credit_ns,
            .cost = load->base * (load->hooks + load->other) * 1e9,
            .hooks = load->base * load->hooks * 1e9,
            .may = load->base * MAY * 1e9,
        };
        gp_duty_next(&duty, &look);
        look_ns = gp_duty_look_by(&duty, &look);
        look_ns = look_ns != 0 ? look_ns : now_ns + 500000000u;
        follow(&duty, now_ns, &before, &since_ns, &out);
    }
    out.share = cost_ns / base_ns;
    return out;
}

static void hooks_that_take_too_much_are_kept_within_the_budget(void **state)
{
    static const double hooks[] = {0.0105, 0.013, 0.022, 0.025, 0.05, 0.1};
    (void)state;
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        outcome_t out = simulate(&(load_t){.base = 1, .hooks = hooks[i], .other = 0.001, .resting = 0.0005}, 10);
        assert_true(out.share > MAY - 0.002 && out.share < MAY + 0.002);
        assert_true(out.rests >= 2);
        assert_true(out.longest_window_s <= 4);
        assert_true(hooks[i] > 0.05 || out.longest_rest_s <= 6);
    }
}

static void one_that_does_little_rests_as_well(void **state)
{
    (void)state;
    outcome_t out = simulate(&(load_t){.base = 0.3, .hooks = 0.024, .other = 0.003, .resting = 0.002}, 10);
    assert_true(out.share > MAY - 0.002 && out.share < MAY + 0.002);
}

static void debt_is_saved_bit_by_bit(void **state)
{
    (void)state;
    load_t load = {.base = 1, .hooks = 0.024, .other = 0.001, .resting = 0.0005, .debt_s = 12};
    outcome_t first = simulate(&load, 0), later_on = simulate(&load, 60);
    assert_true(first.longest_rest_s <= 6);
    assert_true(first.share < MAY);
    assert_true(later_on.share > MAY - 0.002 && later_on.share < MAY + 0.002);
}

static void what_others_take_is_no_reason(void **state)
{
    (void)state;
    assert_int_equal(simulate(&(load_t){.base = 1, .hooks = 0.004, .other = 0.02}, 0).rests, 0);
    assert_int_equal(simulate(&(load_t){.base = 1, .hooks = 0.006, .other = 0.002}, 0).rests, 0);
}

static void nothing_rests_while_other_means_are_left(void **state)
{
    (void)state;
    gp_duty_t duty = {0};
    gp_duty_look_t look = {.now_ns = 1, .credit_ns = -1e12, .cost = 1e8, .hooks = 1e8, .may = 1e7};
    assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_RECORDS);
    look.now_ns += 10000000000ull;
    assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_RECORDS);
    look.is_last_resort = true;
    assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_ENDS);
    assert_int_equal(gp_duty_look_by(&duty, &look) - look.now_ns, 8000000);
    look.is_last_resort = false; // which is not asked any more
    assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_RESTS);
}

static void a_window_ends_once_threads_have_been_sampled(void **state)
{
    (void)state;
    for (int are_late = 0; are_late < 2; are_late++) {
        gp_duty_t duty = {.phase = GP_DUTY_ENDS, .since_ns = 1};
        gp_duty_look_t look = {
            .now_ns = 1, .credit_ns = -1e9, .cost = 3e7, .hooks = 3e7, .may = 1e7, .is_unsettled = true};
        for (int ms = 8; ms < 496; ms += 8) {
            look.now_ns += 8000000;
            assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_ENDS);
            assert_int_equal(gp_duty_look_by(&duty, &look) - look.now_ns, 8000000);
        }
        look.is_unsettled = are_late;
        look.now_ns += are_late ? 20000000 : 0;
        assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_RESTS); // or do not come to run
    }
}

static void a_rest_that_saves_little_ends(void **state)
{
    (void)state;
    gp_duty_t duty = {.phase = GP_DUTY_RESTS, .since_ns = 1, .from_ns = -1e9};
    gp_duty_look_t look = {.now_ns = 1, .credit_ns = -1e9, .cost = 3e7, .hooks = 3e7, .may = 1e7};
    for (int i = 0; i < 19; i++) {
        look.now_ns += 500000000;
        look.credit_ns += 1e6; // a fifth of the budget: the program is idle, or hooks go on
        assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_RESTS);
    }
    look.now_ns += 600000000;
    assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_RECORDS);
    duty = (gp_duty_t){.phase = GP_DUTY_RESTS, .since_ns = 1, .from_ns = -1e9};
    look.now_ns = 20000000001;
    look.credit_ns = -1e9 + 15e7; // it goes on saving
    assert_int_equal(gp_duty_next(&duty, &look), GP_DUTY_RESTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_that_take_too_much_are_kept_within_the_budget),
        cmocka_unit_test(one_that_does_little_rests_as_well),
        cmocka_unit_test(debt_is_saved_bit_by_bit),
        cmocka_unit_test(what_others_take_is_no_reason),
        cmocka_unit_test(nothing_rests_while_other_means_are_left),
        cmocka_unit_test(a_window_ends_once_threads_have_been_sampled),
        cmocka_unit_test(a_rest_that_saves_little_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
