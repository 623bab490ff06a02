// SPDX-License-Identifier: MIT
#include "signal/ticks.h"

// The error of one calibration point is ~30 ns (a read bracketed by two counter reads), so 2 ms give 30 ppm: far below
// what the thread's CPU clock, which is what totals rest on, corrects at every coarse point.
enum { CALIBRATION_NS = 2000000 };

gp_ticks_scale_t gp_ticks_scale = {.mult = 1ull << 32, .counter = false};

static struct {
    uint64_t ns, ticks;
} begin;
static bool calibrated;

// Read both clocks at one moment: of three tries the one with the two closest counter reads.
static void ticks_read_both(uint64_t *ns, uint64_t *ticks)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t before = gp_ticks();
        uint64_t now = gp_clock_ns(CLOCK_MONOTONIC_RAW);
        uint64_t after = gp_ticks();
        if (after - before < best) {
            best = after - before;
            *ns = now;
            *ticks = before + (after - before) / 2;
        }
    }
}

void gp_ticks_begin(void)
{
    if (begin.ns != 0)
        return;
    gp_ticks_scale.counter = gp_arch_counter_is_constant();
    ticks_read_both(&begin.ns, &begin.ticks);
}

void gp_ticks_init(void)
{
    if (calibrated)
        return;
    gp_ticks_begin();
    uint64_t ns, ticks;
    do {
        ticks_read_both(&ns, &ticks);
    } while (ns - begin.ns < CALIBRATION_NS);
    if (gp_ticks_scale.counter && ticks > begin.ticks)
        gp_ticks_scale.mult = (uint64_t)(((unsigned __int128)(ns - begin.ns) << 32) / (ticks - begin.ticks));
    calibrated = true;
}

uint64_t gp_ticks_hz(void)
{
    return gp_ticks_from_ns(1000000000u);
}
