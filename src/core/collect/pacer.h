// SPDX-License-Identifier: MIT
// The pacer: a thread of greenprof's own that sends the signals of the clock engine `monotonic`.
//
// Model: where a timer is due, its thread is sent the signal if it runs, or would if it were let. A waiting thread is
// left alone, so no call of the program's is interrupted after it has waited; a call interrupted on the way into its
// wait is made again (signal/restart.h). Time is not lost, it is in the weight of the next sample; and as moments are
// drawn on the wall clock, a running thread is hit in proportion to its time. The thread has a table of descriptors of
// its own, empty: its files take no number of the program's.
#pragma once

#include "signal/clock_paced.h"

// For gp_clock_pacer. start(): caller holds the sampler's lock; in a forked child it starts another one.
extern const gp_pacer_t gp_pacer;

// Is there a pacer's thread? Sampler's lock, or the program's only thread.
bool gp_pacer_runs(void);
