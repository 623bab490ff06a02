// SPDX-License-Identifier: MIT
#include "signal/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// The error of one calibration point is ~30 ns (a read bracketed by two counter reads), so 2 ms give 30 ppm: far below
// what the thread's CPU clock, which is what totals rest on, corrects at every coarse point.
enum { CALIBRATION_NS = 2000000 };

gp_ticks_scale_t gp_ticks_scale = {.mult = 1ull << 32, .counter = false};

static struct {
    uint64_t ns, ticks;
} begin;
static bool calibrated;

static bool ticks_counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    // Source: AMD64 APM vol. 3, CPUID Fn8000_0007_EDX bit 8 (TscInvariant); the Intel SDM has the same bit.
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
#elif defined(__aarch64__)
    return true; // the generic timer is constant by architecture
#else
    return false;
#endif
}

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
    gp_ticks_scale.counter = ticks_counter_is_invariant();
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
