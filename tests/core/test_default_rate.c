// SPDX-License-Identifier: MIT
// The default rate: the whole at each price, and some samples whatever the price.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/default_rate.h"

static const double MOST_HZ = 1000, BUSY = 1e9, MAY = 0.02;

static gp_rate_look_t look_of(double price_us, double hooks, double own)
{
    return (gp_rate_look_t){.base = BUSY, .hooks = hooks * BUSY, .own = own * BUSY, .price_ns = price_us * 1e3};
}

static void cheap_signals_come_as_often_as_asked_for(void **state)
{
    (void)state;
    gp_rate_look_t look = look_of(9, 0.002, 0.003);
    assert_true(gp_default_rate_of(&look, MOST_HZ, 250) == MOST_HZ);
    assert_true(gp_default_rate_of(&look, 100, 100) == 100);
}

static void the_whole_is_within_the_bound(void **state)
{
    (void)state;
    for (double price_us = 20; price_us < 200; price_us *= 1.3)
        for (double others = 0; others <= 0.015; others += 0.003) {
            gp_rate_look_t look = look_of(price_us, others / 2, others / 2);
            double hz = gp_default_rate_of(&look, MOST_HZ, 250), whole = others + hz * price_us / 1e6;
            assert_true(whole <= MAY + 1e-9);
            assert_true(whole > MAY - 1e-9 || hz == MOST_HZ);
        }
}

static void samples_have_their_part_whatever_hooks_take(void **state)
{
    (void)state;
    gp_rate_look_t look = look_of(80, 0.5, 0.5), in_debt = look_of(80, 0, 0);
    in_debt.credit_ns = -60e9;
    assert_true(gp_default_rate_of(&look, MOST_HZ, 250) == 62.5);
    assert_true(gp_default_rate_of(&in_debt, MOST_HZ, 250) == 62.5);
}

static void what_the_start_took_is_saved(void **state)
{
    (void)state;
    double credit_ns = -20e6, took_ns = 20e6;
    for (int i = 0; i < 20; i++) { // looks, half a second each
        gp_rate_look_t look = look_of(80, 0.002, 0.002);
        look.credit_ns = credit_ns;
        double half_ns = BUSY / 2 * (0.004 + gp_default_rate_of(&look, MOST_HZ, 250) * 80e-6);
        took_ns += half_ns;
        credit_ns += BUSY / 2 * MAY - half_ns;
    }
    assert_true(took_ns / (10 * BUSY) < MAY + 0.0005);
    assert_true(took_ns / (10 * BUSY) > MAY - 0.002);
}

static void an_idle_program_keeps_its_rate(void **state)
{
    (void)state;
    gp_rate_look_t idle = {.base = 1e5, .own = 1e6, .price_ns = 80e3}, unknown = {.base = BUSY};
    assert_true(gp_default_rate_of(&idle, MOST_HZ, 240) == 240);
    assert_true(gp_default_rate_of(&unknown, MOST_HZ, 250) == 250);
}

static void what_is_chosen_is_obeyed(void **state)
{
    (void)state;
    gp_rate_look_t look = look_of(80, 0, 0);
    assert_int_equal(gp_default_rate_first(1000, true), 1000);
    assert_int_equal(gp_default_rate_first(1000, false), 250);
    gp_default_rate_begin(1000, true);
    gp_default_rate_keep(&look);
    assert_false(gp_default_rate_is_kept());
    assert_int_equal(gp_default_rate_lowered_to(), 0);
    assert_int_equal(gp_default_rate_end(), 1000);
    assert_false(gp_default_rate_is_recording());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheap_signals_come_as_often_as_asked_for),
        cmocka_unit_test(the_whole_is_within_the_bound),
        cmocka_unit_test(samples_have_their_part_whatever_hooks_take),
        cmocka_unit_test(what_the_start_took_is_saved),
        cmocka_unit_test(an_idle_program_keeps_its_rate),
        cmocka_unit_test(what_is_chosen_is_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
