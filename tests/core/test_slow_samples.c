// SPDX-License-Identifier: MIT
// A handler that takes longer than its period: the program goes on, at longer intervals; a handler only kept from its
// processor is not slowed.
//
// Usage: test_slow_samples ENGINE
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "cmocka_all.h"
#include "collect/collector.h"
#include "collect/sampler.h"
#include "collect/thread_timers.h"
#include "greenprof/prof.h"
#include "signal/clock_engine.h"
#include "signal/language.h"
#include "work.h"

enum { FAST_HZ = 20000, SLOW_HZ = 100, STEPS = 300, STEP_TURNS = 300000, COST_NS = 8000000, SAMPLES = 20 };

static bool burns;
static volatile int sink;

// A walk of a language's frames that takes long.
static size_t walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags)
{
    (void)place, (void)frames, (void)max, (void)flags;
    if (burns)
        burn(COST_NS);
    else
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = COST_NS}, NULL);
    return 0;
}

static prof_coro_t *unreported(uint64_t *id)
{
    (void)id;
    return NULL;
}

static void nothing(void)
{
}

static prof_coro_t *nothing_runs(void)
{
    return NULL;
}

static gp_language_t slow_language = {
    .name = "slow",
    .walk = walk,
    .unreported = unreported,
    .enter = nothing,
    .current = nothing_runs,
    .before_drain = nothing,
    .after_drain = nothing,
};

static uint64_t counter_of(enum gp_counter counter)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_collector_counters(counters);
    return counters[counter];
}

static prof_t *start(unsigned hz)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.frequency_hz = hz;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        skip(); // the kernel grants this machine no such clock
    atomic_store(&gp_languages, &slow_language);
    atomic_store(&gp_language, &slow_language);
    return profile;
}

static void stop_it(prof_t *profile)
{
    atomic_store(&gp_language, NULL);
    atomic_store(&gp_languages, NULL);
    prof_stop(profile);
    prof_free(profile);
}

static void program_goes_on(void **state)
{
    (void)state;
    burns = true;
    prof_t *profile = start(FAST_HZ);
    uint64_t before = counter_of(GP_COUNTER_SLOWED);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < STEP_TURNS; i++)
            sink++;
    uint64_t slowed = counter_of(GP_COUNTER_SLOWED) - before;
    stop_it(profile);
    assert_true(slowed > 0);
}

static void waiting_is_no_cost(void **state)
{
    (void)state;
    burns = false;
    prof_t *profile = start(SLOW_HZ);
    uint64_t before = counter_of(GP_COUNTER_SLOWED), samples = counter_of(GP_COUNTER_SAMPLES);
    while (counter_of(GP_COUNTER_SAMPLES) - samples < SAMPLES)
        for (int i = 0; i < STEP_TURNS; i++)
            sink++;
    uint64_t slowed = counter_of(GP_COUNTER_SLOWED) - before;
    stop_it(profile);
    assert_int_equal(slowed, 0);
}

static void intervals_follow_the_cost(void **state)
{
    (void)state;
    const uint64_t period = 1000000, cost = 400000;
    gp_timer_t timer;
    gp_timer_prepare(&timer, 1000, 12345);
    for (int i = 0; i < 1000; i++) {
        gp_timer_charge(&timer, period / 10);
        assert_true(gp_timer_draw(&timer) < period + period / 2);
    }
    for (int i = 0; i < 100; i++)
        gp_timer_charge(&timer, cost);
    for (int i = 0; i < 1000; i++) {
        gp_timer_charge(&timer, cost);
        uint64_t ns = gp_timer_draw(&timer);
        assert_in_range(ns, 8 * cost - 100, 8 * cost + period);
        assert_int_equal(timer.block_left, 0);
    }
    for (int i = 0; i < 100; i++)
        gp_timer_charge(&timer, 1000);
    assert_true(gp_timer_draw(&timer) < period + period / 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_no_cost), // before there was any cost: sampling lingers
        cmocka_unit_test(program_goes_on),
        cmocka_unit_test(intervals_follow_the_cost),
    };
    if (argc != 2 || gp_timers_choose_engine(argv[1]) != 0)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
