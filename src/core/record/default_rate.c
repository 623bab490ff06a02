// SPDX-License-Identifier: MIT
#include "record/default_rate.h"

#include <stdatomic.h>

#include "collect/sampler.h"
#include "model/own_cost.h"

enum {
    FIRST_HZ = 250,    // until the price of a signal is known: within the bound where it takes 80 us
    REPAY_S = 2,       // what was taken too much is saved within about so long
    IDLE_NS = 1000000, // of CPU time a second: too little to tell a share of
};

static const double LEAST_PART = 0.25, NEARLY = 0.95;

static _Atomic unsigned most, present; // 0 = there is no recording
static _Atomic bool is_kept;

double gp_default_rate_of(const gp_rate_look_t *look, double most_hz, double present_hz)
{
    double may = look->base * GP_DEFAULT_COST_PPM / 1e6;
    double left = may + look->credit_ns / REPAY_S - look->hooks - look->own;
    if (look->base < IDLE_NS || look->price_ns <= 0)
        return present_hz;
    left = left < may * LEAST_PART ? may * LEAST_PART : left > may ? may : left;
    double hz = left * 1e9 / (look->base * look->price_ns);
    return hz < 1 ? 1 : hz > most_hz ? most_hz : hz;
}

unsigned gp_default_rate_first(unsigned most_hz, bool is_chosen)
{
    return is_chosen || most_hz < FIRST_HZ ? most_hz : FIRST_HZ;
}

void gp_default_rate_begin(unsigned most_hz, bool is_chosen)
{
    atomic_store_explicit(&is_kept, !is_chosen, memory_order_relaxed);
    atomic_store_explicit(&most, most_hz, memory_order_relaxed);
    atomic_store_explicit(&present, gp_default_rate_first(most_hz, is_chosen), memory_order_relaxed);
}

unsigned gp_default_rate_end(void)
{
    return atomic_exchange_explicit(&present, 0, memory_order_relaxed);
}

bool gp_default_rate_is_recording(void)
{
    return atomic_load_explicit(&present, memory_order_relaxed) != 0;
}

bool gp_default_rate_is_kept(void)
{
    return gp_default_rate_is_recording() && atomic_load_explicit(&is_kept, memory_order_relaxed);
}

void gp_default_rate_keep(const gp_rate_look_t *look)
{
    unsigned hz = atomic_load_explicit(&present, memory_order_relaxed);
    double fits = gp_default_rate_of(look, atomic_load_explicit(&most, memory_order_relaxed), hz);
    if (gp_default_rate_is_kept())
        gp_sampler_change_wish(&present, (unsigned)(fits + 0.5));
}

unsigned gp_default_rate_lowered_to(void)
{
    unsigned hz = atomic_load_explicit(&present, memory_order_relaxed);
    bool is_lowered = gp_default_rate_is_kept() && hz < atomic_load_explicit(&most, memory_order_relaxed) * NEARLY;
    return is_lowered ? hz : 0;
}
