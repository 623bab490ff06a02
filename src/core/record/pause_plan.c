// SPDX-License-Identifier: MIT
#include "record/pause_plan.h"

enum {
    CYCLE_MS = 4000, // a window and its rest, where neither is at its bounds
    WINDOW_LEAST_MS = 500,
    WINDOW_MOST_MS = 2000,
    REST_LEAST_MS = 500, // a shorter one costs more than it saves
    DEBT_PART = 4,       // of older debt, what one rest saves
    HOOKS_PART = 2,      // of the budget, what hooks take at least: else rests save little
    LONG_MS = 10000,     // of a rest that ends then if it saves little:
    SAVES_PART = 4,      // of what it would if nothing cost anything and the program did as much as in windows
    ENDS_MS = 8,         // some samples (GP_TIMERS_SOON_NS), and again while they are waited for:
    ENDS_MOST_MS = 500,
    LOOK_LEAST_MS = 20, // between two looks
    LOOK_MOST_MS = 500,
    REST_LOOK_MS = 900, // at most, in a rest
};

#define MS 1000000ull

static double pause_plan_clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static double pause_plan_window_ns(const gp_duty_look_t *look)
{
    return pause_plan_clamp(CYCLE_MS * look->may / look->cost, WINDOW_LEAST_MS, WINDOW_MOST_MS) * MS;
}

// The budget for some time, ns.
static double pause_plan_budget_of(const gp_duty_look_t *look, unsigned ms)
{
    return look->may * ms / 1e3;
}

static bool pause_plan_is_to_rest(const gp_duty_t *duty, const gp_duty_look_t *look)
{
    return look->is_last_resort && look->cost > look->may && look->hooks * HOOKS_PART > look->may &&
           (double)(look->now_ns - duty->since_ns) >= pause_plan_window_ns(look) &&
           look->credit_ns <= -pause_plan_budget_of(look, REST_LEAST_MS);
}

// Save what this window took too much, and some of what was before.
static double pause_plan_goal_of(const gp_duty_t *duty, const gp_duty_look_t *look)
{
    double lasted_ns = pause_plan_clamp((double)(look->now_ns - duty->since_ns), 0, WINDOW_MOST_MS * MS);
    double debt_ns = -look->credit_ns, made_ns = (look->cost - look->may) * lasted_ns / 1e9;
    double saved_ns = made_ns > debt_ns / DEBT_PART ? made_ns : debt_ns / DEBT_PART;
    return look->credit_ns + pause_plan_clamp(saved_ns, pause_plan_budget_of(look, REST_LEAST_MS), debt_ns);
}

static bool pause_plan_is_rested(const gp_duty_t *duty, const gp_duty_look_t *look)
{
    double lasted_ns = (double)(look->now_ns - duty->since_ns);
    double saved_ns = look->credit_ns - duty->from_ns;
    bool saves_little = saved_ns * SAVES_PART < look->may * lasted_ns / 1e9;
    return look->credit_ns >= duty->goal_ns || (lasted_ns >= LONG_MS * MS && saves_little);
}

// Do threads kept waiting for a processor lack the sample to settle their accounts?
static bool pause_plan_ends_on(const gp_duty_t *duty, const gp_duty_look_t *look)
{
    return look->is_unsettled && look->now_ns - duty->since_ns < ENDS_MOST_MS * MS;
}

static void pause_plan_begin(gp_duty_t *duty, gp_duty_phase_t phase, const gp_duty_look_t *look)
{
    duty->phase = phase;
    duty->since_ns = look->now_ns;
    duty->from_ns = look->credit_ns;
}

gp_duty_phase_t gp_duty_next(gp_duty_t *duty, const gp_duty_look_t *look)
{
    if (duty->since_ns == 0)
        duty->since_ns = look->now_ns;
    if (duty->phase == GP_DUTY_ENDS && !pause_plan_ends_on(duty, look)) {
        pause_plan_begin(duty, GP_DUTY_RESTS, look);
    } else if (duty->phase == GP_DUTY_RECORDS && pause_plan_is_to_rest(duty, look)) {
        duty->goal_ns = pause_plan_goal_of(duty, look);
        pause_plan_begin(duty, GP_DUTY_ENDS, look);
    } else if (duty->phase == GP_DUTY_RESTS && pause_plan_is_rested(duty, look)) {
        pause_plan_begin(duty, GP_DUTY_RECORDS, look);
    }
    return duty->phase;
}

uint64_t gp_duty_look_by(const gp_duty_t *duty, const gp_duty_look_t *look)
{
    double left_ns = REST_LOOK_MS * MS, lasted_ns = (double)(look->now_ns - duty->since_ns);
    if (duty->phase == GP_DUTY_ENDS)
        return look->now_ns + ENDS_MS * MS;
    if (duty->phase == GP_DUTY_RECORDS && (!look->is_last_resort || look->cost <= look->may))
        return 0;
    if (duty->phase == GP_DUTY_RECORDS && lasted_ns < pause_plan_window_ns(look))
        left_ns = pause_plan_window_ns(look) - lasted_ns;
    else if (duty->phase == GP_DUTY_RESTS && look->may > 0)
        left_ns = (duty->goal_ns - look->credit_ns) / look->may * 1e9;
    double most_ms = duty->phase == GP_DUTY_RESTS ? REST_LOOK_MS : LOOK_MOST_MS;
    return look->now_ns + (uint64_t)pause_plan_clamp(left_ns, LOOK_LEAST_MS * MS, most_ms * MS);
}
