// SPDX-License-Identifier: MIT
#include "signal/clock_engine.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Changing a timer's interval costs 1-20 us (it reprograms the hardware timer; on virtual machines that leaves the
// guest), so at low rates it is done once in 8 ms. Within such a block the interval is constant but arbitrary. At high
// rates blocks must be short: the handler's own time delays a program that works by the CPU clock. Samples at the end
// of a slice then push the next slice away, and keep hitting this end until the next draw. Measured with slices of 0.4
// and 0.1 ms at 5000 Hz: the short one got 5.6 % too much with 8 samples a block, nothing with one.
enum {
    REDRAW_NS = 8000000,
    REDRAW_STEP_NS = 125000, // a sample a block for each of these in the period: 8 at 1000 Hz, 1 at 5000
    REDRAW_FASTEST = 2,      // above 8000 Hz the price counts more
    COST_SHARE = 8,          // of an interval, what its sample may take
    COST_MEMORY = 8,         // samples in the running mean
};

static uint32_t clock_engine_block_samples(uint64_t period_ns)
{
    uint64_t samples = period_ns < REDRAW_STEP_NS ? REDRAW_FASTEST : period_ns / REDRAW_STEP_NS;
    uint64_t most = REDRAW_NS / period_ns;
    samples = samples < most ? samples : most;
    return samples > 0 ? (uint32_t)samples : 1;
}

#define ROW(number, id, name) &gp_clock_##name,
const gp_clock_engine_t *const gp_clock_engines[] = {GP_ENGINES(ROW) NULL};

_Atomic bool gp_clock_goes_on;

bool gp_clock_has_ended(pid_t tid)
{
    return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

const gp_clock_engine_t *gp_clock_engine_find(const char *name)
{
    for (int i = 0; gp_clock_engines[i] != NULL; i++)
        if (strcmp(gp_clock_engines[i]->name, name) == 0)
            return gp_clock_engines[i];
    return NULL;
}

void gp_timer_prepare(gp_timer_t *timer, unsigned frequency_hz, uint32_t seed)
{
    timer->armed = false;
    timer->period_ns = 1000000000u / frequency_hz;
    timer->random = seed | 1u;
    timer->block_left = 0;
    timer->cost_ns = 0;
    atomic_store_explicit(&timer->slowed_ns, 0, memory_order_relaxed);
}

static const gp_clock_engine_t *clock_engine_of(const gp_timer_t *timer)
{
    return atomic_load_explicit(&timer->engine, memory_order_acquire);
}

int gp_timer_arm(gp_timer_t *timer, const gp_clock_engine_t *engine, pid_t tid, int signal_number)
{
    // Release: partner of the acquire in handle().
    atomic_store_explicit(&timer->engine, engine, memory_order_release);
    return engine->arm(timer, tid, signal_number);
}

void gp_timer_disarm(gp_timer_t *timer)
{
    if (clock_engine_of(timer) != NULL)
        clock_engine_of(timer)->disarm(timer);
}

void gp_timer_abandon(gp_timer_t *timer)
{
    if (clock_engine_of(timer) != NULL)
        clock_engine_of(timer)->abandon(timer);
}

bool gp_timer_is_alive(const gp_timer_t *timer)
{
    return clock_engine_of(timer) != NULL && clock_engine_of(timer)->is_alive(timer);
}

uint64_t gp_timer_longest_gap_ns(const gp_timer_t *timer)
{
    const gp_clock_engine_t *engine = clock_engine_of(timer);
    if (engine == NULL)
        return 0;
    uint64_t slowed_ns = atomic_load_explicit(&timer->slowed_ns, memory_order_relaxed);
    // The interval under way is from the period before, which may have been longer.
    uint64_t drawn_ns = atomic_load_explicit(&timer->drawn_ns, memory_order_relaxed);
    uint64_t period_ns = drawn_ns > timer->period_ns ? drawn_ns : timer->period_ns;
    uint64_t gap_ns = engine->gap_periods * (slowed_ns + period_ns);
    return gap_ns > engine->gap_min_ns ? gap_ns : engine->gap_min_ns;
}

uint64_t gp_timer_draw(gp_timer_t *timer)
{
    // xorshift32: Marsaglia, "Xorshift RNGs", 2003.
    uint32_t x = timer->random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    timer->random = x;
    atomic_store_explicit(&timer->drawn_ns, timer->period_ns, memory_order_relaxed);
    atomic_store_explicit(&timer->set_ns, timer->period_ns, memory_order_relaxed);
    uint64_t slowed_ns = atomic_load_explicit(&timer->slowed_ns, memory_order_relaxed);
    timer->block_left = slowed_ns != 0 ? 0 : clock_engine_block_samples(timer->period_ns) - 1;
    uint64_t least_ns = slowed_ns != 0 ? slowed_ns : timer->period_ns / 2;
    uint64_t interval_ns = least_ns + ((timer->period_ns * (x >> 8)) >> 24);
    atomic_store_explicit(&timer->interval_ns, interval_ns, memory_order_relaxed);
    return interval_ns;
}

uint64_t gp_timer_beyond_ns(const gp_timer_t *timer, uint64_t used_ns)
{
    uint64_t interval_ns = atomic_load_explicit(&timer->interval_ns, memory_order_relaxed);
    return used_ns > interval_ns ? used_ns - interval_ns : 0;
}

bool gp_timer_is_costly(const gp_timer_t *timer, uint64_t cost_ns)
{
    return cost_ns * COST_SHARE > timer->period_ns;
}

void gp_timer_charge(gp_timer_t *timer, uint64_t cost_ns)
{
    timer->cost_ns += (uint64_t)(((int64_t)cost_ns - (int64_t)timer->cost_ns) / COST_MEMORY);
    bool is_slowed = gp_timer_is_costly(timer, timer->cost_ns);
    atomic_store_explicit(&timer->slowed_ns, is_slowed ? timer->cost_ns * COST_SHARE : 0, memory_order_relaxed);
    if (is_slowed)
        timer->block_left = 0;
}

void gp_timer_tick(gp_timer_t *timer, const gp_clock_engine_t *engine)
{
    atomic_store_explicit(&timer->sent, false, memory_order_relaxed);
    if (timer->block_left > 0) {
        timer->block_left--;
        return;
    }
    engine->set_interval(timer, gp_timer_draw(timer));
}
