// SPDX-License-Identifier: MIT
// How often the collector looks at sleeping threads: see sleep_scan.h.
//
// Model: every 5 ms on average, at irregular intervals. While no look finds a coroutine asleep on its thread, the mean
// is a hundredth of this while, up to 20 ms: a service that never blocks pays a quarter. The first sleep that is found
// takes it back to 5 ms. Right after a rest of all threads some looks are quick in any case.
//
// The price: a sleep that no look met has no sample. At 5 ms one of s ms is met by s of 5 looks, at 20 ms by s of 20.
// After a while without sleeps, up to three quarters of the stacks of sleeps below 20 ms are lost, against 5 ms; none
// are within half a second after one was met. A longer one is met, and is charged from where it began: the first look
// comes 10 ms later than it would have, those behind it as ever. The ledger, which has each sleep as a whole, is as it
// was.
//
// Threads: the collector's. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    GP_LOOK_NS = 5000000, // mean time between two looks
    GP_LOOK_SELDOM_NS = 4 * GP_LOOK_NS,
    GP_LOOK_QUIET_PART = 100, // of the time without a find
    GP_LOOK_QUICK_LOOKS = 4,
};

typedef struct gp_scan_pace {
    uint64_t quiet_ns; // in which looks found nothing, the rests of all threads left out
    unsigned quick;    // so many looks come after 5 ms in any case
    uint32_t random;   // xorshift32; 0 = not begun
} gp_scan_pace_t;

// How long to wait until the next look, ns: between half and one and a half of the mean.
//   least_mean_ns: what the mean is at least.
uint64_t gp_scan_pace_next_ns(gp_scan_pace_t *pace, uint64_t least_mean_ns);

// A look came `after_ns` after the one before; `found`: a sleep.
void gp_scan_pace_note(gp_scan_pace_t *pace, uint64_t after_ns, bool found);

// As if a sleep had been found.
void gp_scan_pace_reset(gp_scan_pace_t *pace);

// The next looks are quick, the others as they were.
void gp_scan_pace_hasten(gp_scan_pace_t *pace);
