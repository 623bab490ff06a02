// SPDX-License-Identifier: MIT
#include "record/budget.h"

#include <errno.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/cost.h"
#include "collect/sampler.h"
#include "collect/thread_timers.h"
#include "collect/wait_scan.h"
#include "coro/spawn.h"
#include "exact/recorder.h"
#include "model/budget.h"
#include "model/own_cost.h"
#include "record/budget_share.h"
#include "record/default_rate.h"
#include "record/pause_plan.h"
#include "settings.h"
#include "signal/activity.h"
#include "signal/rest.h"
#include "signal/slice.h"
#include "signal/ticks.h"

enum {
    LOOK_MS = 500,
    BLIND_HZ = 100,  // until it is known what a signal takes
    MEAN_S = 2,      // of rates
    REPAY_S = 5,     // what was taken too much is saved within about so long
    CREDIT_S = 2,    // what was not taken may be taken later for so long
    DEBT_S = 30,     // what was taken too much is remembered for so long
    SPAWNS_MAX = 64, // where hooks take too much, of so many places of creation one is kept, at most; and then:
    SPARING_ACTIVITIES = 500, // of the timeline, a second and thread
    SPARING_PENDING_NS = 2000000,
    STRETCH_MAX = 10, // of looks at sleeping threads, which become fewer as samples do
    UNSETTLED_NS = 3 * GP_TIMERS_SOON_NS,
    LONG_LOOK_MS = 5000, // after which rates are begun anew
    ANOTHER_MS = 30000,  // of the program's CPU time, between measurements of what a signal takes
    OWN_MS = 2000,       // the same, before the first one where another process has measured it
};

static const double STEP_DOWN = 0.5, STEP_UP = 1.5, NEARLY = 0.95;

void (*_Atomic gp_budget_before_rest)(void);
static _Atomic uint32_t budget_ppm;
static _Atomic unsigned lowered_to, slowness = 100;
static _Atomic bool may_slow_down;

static struct {
    pid_t pid; // whose numbers these are
    bool is_due, is_lowered;
    uint64_t looked_ns; // on CLOCK_MONOTONIC
    gp_cost_t now, before;
    double base, cost, hooks, own; // ns a second, means
    uint64_t measured_at_ns;       // of the program's CPU time: when it was measured what a signal takes
    double credit_ns;
    double hz, slow; // rounds come so many times later
    gp_duty_t duty;
    uint64_t look_by_ns; // on CLOCK_MONOTONIC; 0 = when it is due
} state = {.slow = 1};

uint32_t gp_budget_ppm(void)
{
    return atomic_load_explicit(&budget_ppm, memory_order_relaxed);
}

unsigned gp_budget_lowered_to(void)
{
    unsigned hz = atomic_load_explicit(&lowered_to, memory_order_relaxed);
    return hz != 0 ? hz : gp_default_rate_lowered_to();
}

void gp_budget_let_slow_down(bool may)
{
    atomic_store_explicit(&may_slow_down, may, memory_order_relaxed);
}

unsigned gp_budget_slowness(void)
{
    return atomic_load_explicit(&slowness, memory_order_relaxed);
}

static double budget_since(uint64_t now, uint64_t before)
{
    return now > before ? (double)(now - before) : 0;
}

bool gp_budget_spent_by_hooks(double *percent, double *switches_per_s)
{
    gp_cost_t cost;
    if (gp_budget_ppm() == 0)
        return false;
    gp_cost_read(&cost);
    double base_ns = (double)gp_cost_base_ns(&cost), program_ns = (double)cost.program_ns;
    base_ns -= (double)cost.rest_ns; // hooks cost only while recording
    program_ns -= (double)cost.rest_ns;
    double hooks_ns = budget_since(
        cost.hook_ns, atomic_load_explicit(&gp_thread_orphan_counters[GP_COUNTER_REST_HOOK_NS], memory_order_relaxed));
    *percent = base_ns > 0 ? hooks_ns * 100 / base_ns : 0;
    *switches_per_s = program_ns > 0 ? (double)cost.switches * 1e9 / program_ns : 0;
    return *percent * 1e4 > gp_budget_ppm();
}

static void budget_count_more(enum gp_counter counter, uint64_t more)
{
    atomic_fetch_add_explicit(&gp_thread_orphan_counters[counter], more, memory_order_relaxed);
}

static void budget_count(enum gp_counter counter)
{
    budget_count_more(counter, 1);
}

static double budget_clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static void budget_slow_down(double times)
{
    unsigned percent = (unsigned)(times * 100 + 0.5);
    state.slow = times;
    atomic_store_explicit(&slowness, percent, memory_order_relaxed);
    gp_collector_slow_down(percent);
}

static double budget_most_slow(void)
{
    return atomic_load_explicit(&may_slow_down, memory_order_relaxed) ? GP_BUDGET_SLOW_MAX : 1;
}

static bool budget_has_no_means_left(double least_hz)
{
    return state.hz <= least_hz && state.slow >= budget_most_slow();
}

// The start's cost is saved later.
static double budget_first_credit_ns(void)
{
    return gp_budget_ppm() == 0 && state.pid != getpid() ? -(double)gp_cost_sum(&state.now) : 0;
}

static void budget_begin_anew(uint64_t now_ns)
{
    double credit_ns = budget_first_credit_ns();
    state.measured_at_ns = 0;
    state.pid = getpid();
    state.is_lowered = false;
    state.looked_ns = now_ns;
    state.before = state.now;
    state.base = state.cost = state.hooks = state.own = 0;
    state.credit_ns = credit_ns;
    state.duty = (gp_duty_t){.phase = gp_rest_is_now() ? GP_DUTY_RESTS : GP_DUTY_RECORDS, .since_ns = now_ns};
    state.look_by_ns = 0;
    budget_slow_down(1);
    if (gp_cost_delivery_ns() == 0)
        state.hz = BLIND_HZ;
}

// Means of the cost of recording: they do not change while recording rests.
static void budget_take_means(double seconds)
{
    double share = state.duty.phase == GP_DUTY_RESTS ? 0 : budget_clamp(seconds / MEAN_S, 0, 1);
    double base_ns = budget_since(gp_cost_base_ns(&state.now), gp_cost_base_ns(&state.before));
    double cost_ns = budget_since(gp_cost_sum(&state.now), gp_cost_sum(&state.before));
    double hooks_ns = budget_since(state.now.hook_ns, state.before.hook_ns);
    double own_ns = budget_since(state.now.own_ns, state.before.own_ns);
    double may = (gp_budget_ppm() != 0 ? gp_budget_ppm() : GP_DEFAULT_COST_PPM) / 1e6;
    state.base += (base_ns / seconds - state.base) * share;
    state.cost += (cost_ns / seconds - state.cost) * share;
    state.hooks += (hooks_ns / seconds - state.hooks) * share;
    state.own += (own_ns / seconds - state.own) * share;
    state.credit_ns = budget_clamp(state.credit_ns + may * base_ns - cost_ns, -may * state.base * DEBT_S,
                                   may * state.base * CREDIT_S);
    if (state.duty.phase == GP_DUTY_RESTS)
        budget_count_more(GP_COUNTER_REST_HOOK_NS, (uint64_t)hooks_ns);
    state.before = state.now;
}

static void budget_note(unsigned wanted)
{
    bool is_lowered = state.hz < wanted * NEARLY;
    if (is_lowered && !state.is_lowered)
        budget_count(GP_COUNTER_RATE_LOWERED);
    state.is_lowered = is_lowered;
    atomic_store_explicit(&lowered_to, is_lowered ? (unsigned)state.hz : 0, memory_order_relaxed);
}

// Set how much hooks leave out, so the rest of their work is exact within the budget. every: see gp_spawn_every.
static void budget_set_sparing(uint32_t every)
{
    atomic_store_explicit(&gp_spawn_every, every, memory_order_relaxed);
    gp_activity_set_most(every > 1 ? SPARING_ACTIVITIES : GP_ACTIVITIES_PER_SECOND);
    gp_slice_set_root_pending(every > 1 ? SPARING_PENDING_NS : GP_SLICE_ROOT_PENDING_NS);
}

// may: ns a second, as of budget_adapt().
static void budget_adapt_hooks(double may)
{
    uint32_t every = atomic_load_explicit(&gp_spawn_every, memory_order_relaxed);
    if (state.hooks > may && every < SPAWNS_MAX)
        budget_set_sparing(every * 2);
    else if (state.hooks < may / 2 && every > 1)
        budget_set_sparing(every / 2);
}

// Is there nothing left to save with but that recording rests?
static bool budget_is_last_resort(void)
{
    return budget_has_no_means_left(GP_BUDGET_LEAST_HZ) && __atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0 &&
           gp_sampler_may_rest();
}

// may: ns a second, as the others leave it.
static void budget_adapt(double may)
{
    unsigned wanted, present = gp_sampler_frequency(&wanted);
    if (present == 0 || wanted == 0)
        return;
    budget_adapt_hooks(may);
    double least = wanted < GP_BUDGET_LEAST_HZ ? wanted : GP_BUDGET_LEAST_HZ;
    double goal = budget_clamp(may + state.credit_ns / REPAY_S, 0, 2 * may) - state.hooks,
           ours = state.cost - state.hooks;
    double step = goal <= 0 ? STEP_DOWN : ours <= 0 ? STEP_UP : budget_clamp(goal / ours, STEP_DOWN, STEP_UP);
    if (state.slow > 1 || (state.hz <= least && step < 1)) // half the step: what comes later is seen later
        budget_slow_down(budget_clamp(state.slow * 2 / (1 + step), 1, budget_most_slow()));
    else
        state.hz = budget_clamp((state.hz < wanted ? state.hz : wanted) * step, least, wanted);
    gp_sampler_limit((unsigned)(state.hz + 0.5));
    gp_wait_scan_stretch((unsigned)budget_clamp(wanted / state.hz, 1, STRETCH_MAX));
    budget_note(wanted);
    if (budget_has_no_means_left(least) && state.cost > may && state.credit_ns < 0 && !budget_is_last_resort())
        budget_count(GP_COUNTER_BUDGET_MISSED);
}

// The phase that begins.
static void budget_enter(gp_duty_phase_t phase, uint64_t now_ns)
{
    if (phase == GP_DUTY_ENDS)
        gp_timers_sample_soon();
    if (phase == GP_DUTY_RESTS) {
        void (*before_rest)(void) = atomic_load_explicit(&gp_budget_before_rest, memory_order_acquire);
        if (before_rest != NULL)
            before_rest();
        if (!gp_sampler_rest()) // a profile has been started meanwhile
            state.duty = (gp_duty_t){.since_ns = now_ns};
    }
    if (phase == GP_DUTY_RECORDS && gp_sampler_resume() == -EAGAIN)
        state.duty = (gp_duty_t){.phase = GP_DUTY_RESTS, .since_ns = now_ns};
}

// may: ns a second, as the others leave it.
static void budget_rest_or_not(double may, uint64_t now_ns)
{
    gp_duty_look_t look = {
        .now_ns = now_ns,
        .is_last_resort = state.duty.phase == GP_DUTY_RECORDS && budget_is_last_resort(),
        .is_unsettled = state.duty.phase == GP_DUTY_ENDS && gp_timers_any_is_unsettled(UNSETTLED_NS),
        .credit_ns = state.credit_ns,
        .cost = state.cost,
        .hooks = state.hooks,
        .may = may,
    };
    if (state.duty.phase == GP_DUTY_RESTS && !gp_rest_is_now()) // a profile was started, or the recording is over
        state.duty = (gp_duty_t){.since_ns = now_ns};
    gp_duty_phase_t before = state.duty.phase, phase = gp_duty_next(&state.duty, &look);
    if (before == GP_DUTY_RESTS && phase == GP_DUTY_RECORDS && state.credit_ns < state.duty.goal_ns)
        budget_count(GP_COUNTER_BUDGET_MISSED); // it saved little
    if (phase != before)
        budget_enter(phase, now_ns);
    state.look_by_ns = gp_duty_look_by(&state.duty, &look);
    gp_collector_look_by(state.look_by_ns);
}

// Looked at now and then: what a signal takes changes with what else the machine does.
static bool budget_knows_price(void)
{
    uint64_t program_ns = state.now.program_ns;
    if (gp_cost_delivery_ns() == 0)
        gp_cost_set_delivery(gp_budget_share_delivery(gp_timers_engine()));
    bool is_known = gp_cost_delivery_ns() != 0;
    uint64_t wait_ms = state.measured_at_ns != 0 ? ANOTHER_MS : OWN_MS;
    if (program_ns < GP_OWN_COST_LEAST_NS || // not in programs that end at once
        gp_timers_frequency() == 0 || (is_known && program_ns - state.measured_at_ns < wait_ms * 1000000ull))
        return is_known;
    gp_cost_calibrate(gp_timers_engine(), state.now.signals);
    gp_budget_share_tell_delivery(gp_timers_engine());
    state.measured_at_ns = program_ns;
    return gp_cost_delivery_ns() != 0;
}

static void budget_keep_default_rate(void)
{
    double handler_ns = state.now.signals > 0 ? (double)state.now.handler_ns / (double)state.now.signals : 0;
    gp_default_rate_keep(&(gp_rate_look_t){.base = state.base,
                                           .hooks = state.hooks,
                                           .own = state.own,
                                           .credit_ns = state.credit_ns,
                                           .price_ns = (double)gp_cost_delivery_ns() + handler_ns});
}

static void budget_look(uint64_t now_ns)
{
    if (state.pid != getpid() || now_ns - state.looked_ns > LONG_LOOK_MS * 1000000ull) {
        budget_begin_anew(now_ns);
        return;
    }
    budget_take_means((double)(now_ns - state.looked_ns) / 1e9);
    state.looked_ns = now_ns;
    if (!budget_knows_price())
        return;
    if (gp_budget_ppm() == 0) {
        budget_keep_default_rate();
        return;
    }
    gp_budget_part_t part = {
        .base = (uint64_t)state.base,
        .cost = (uint64_t)state.cost,
        .may = (uint64_t)(state.base * gp_budget_ppm() / 1e6),
        .is_at_least = budget_has_no_means_left(GP_BUDGET_LEAST_HZ),
    };
    if (part.cost > part.may && (gp_rest_is_now() || budget_is_last_resort())) // rests to save
        part.cost = part.may;
    double may = (double)gp_budget_share(&part, now_ns, gp_timers_engine());
    budget_adapt(may);
    budget_rest_or_not(may, now_ns);
}

static void budget_in_round(void)
{
    uint64_t now_ns = gp_clock_ns(CLOCK_MONOTONIC);
    bool is_late = now_ns - state.looked_ns >= LOOK_MS * 1000000ull && state.duty.phase != GP_DUTY_RESTS;
    state.is_due = state.pid != getpid() || is_late || (state.look_by_ns != 0 && now_ns >= state.look_by_ns);
    if (state.is_due)
        gp_cost_read(&state.now);
}

static void budget_after_round(void)
{
    if (!state.is_due || (gp_budget_ppm() == 0 && !gp_default_rate_is_recording()))
        return;
    state.is_due = false;
    budget_look(gp_clock_ns(CLOCK_MONOTONIC));
}

static const gp_sink_t sink = {.round = budget_in_round, .after_round = budget_after_round};

static void budget_look_from_now_on(void)
{
    static bool is_there;
    if (!is_there)
        gp_sink_add(&sink);
    is_there = true;
}

static void budget_keep_to(uint32_t ppm)
{
    uint32_t before = atomic_exchange_explicit(&budget_ppm, ppm, memory_order_relaxed);
    gp_collector_look_by(0);
    if (ppm == 0 && before != 0) {
        gp_sampler_limit(PROF_FREQUENCY_MAX_HZ);
        gp_wait_scan_stretch(1);
        budget_slow_down(1);
        budget_set_sparing(1);
        gp_sampler_resume();
    }
    if (ppm == 0 || before != 0)
        return;
    gp_sampler_limit(BLIND_HZ);
    state.hz = BLIND_HZ;
    budget_look_from_now_on();
}

static uint32_t budget_of_environment(void)
{
    uint32_t ppm;
    const char *text = gp_setting(GP_SETTING_BUDGET);
    return text != NULL && gp_budget_parse(text, &ppm) ? ppm : 0;
}

void gp_budget_set(uint32_t ppm)
{
    budget_keep_to(ppm != 0 ? ppm : budget_of_environment());
}

void gp_budget_begin_recording(unsigned most_hz, bool is_chosen)
{
    budget_look_from_now_on();
    gp_default_rate_begin(most_hz, is_chosen);
}

void gp_budget_begin(void)
{
    if (budget_of_environment() != 0)
        budget_keep_to(budget_of_environment());
}
