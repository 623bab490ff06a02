#include "signal/clock_engine.h"

#include <string.h>

// Changing a timer's interval costs 1-20 us (it reprograms the hardware timer; on virtual machines that leaves the
// guest), so it is done once in 8 ms or 8 samples, whichever is shorter. Within such a block the interval is
// constant but arbitrary. A long block would be wrong: the handler's own time delays a program that works by the CPU clock,
// so that samples which hit the end of a slice push the next slice away, and keep hitting that end until the next draw.
enum { REDRAW_NS = 8000000, REDRAW_SAMPLES = 8 };

const gp_clock_engine_t *const gp_clock_engines[] = {&gp_clock_perf, &gp_clock_cpu, &gp_clock_monotonic, NULL};

const gp_clock_engine_t *gp_clock_engine_find(const char *name)
{
    for (int i = 0; gp_clock_engines[i] != NULL; i++) {
        if (strcmp(gp_clock_engines[i]->name, name) == 0)
            return gp_clock_engines[i];
    }
    return NULL;
}

void gp_timer_prepare(gp_timer_t *timer, unsigned frequency_hz, uint32_t seed)
{
    timer->armed = false;
    timer->fd = -1;
    timer->period_ns = 1000000000u / frequency_hz;
    timer->random = seed | 1u;
    timer->block_left = 0;
}

uint64_t gp_timer_draw(gp_timer_t *timer)
{
    // xorshift32: Marsaglia, "Xorshift RNGs", 2003.
    uint32_t x = timer->random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    timer->random = x;
    uint64_t samples = REDRAW_NS / timer->period_ns;
    timer->block_left = samples < REDRAW_SAMPLES ? (uint32_t)samples : REDRAW_SAMPLES - 1;
    return timer->period_ns / 2 + ((timer->period_ns * (x >> 8)) >> 24);
}

void gp_timer_tick(gp_timer_t *timer, const gp_clock_engine_t *engine)
{
    if (timer->block_left > 0) {
        timer->block_left--;
        return;
    }
    engine->set_interval(timer, gp_timer_draw(timer));
}
