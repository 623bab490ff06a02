// SPDX-License-Identifier: MIT
// Samples of waiting: where a coroutine was parked, with how long.
//
// Model: all waits of the coroutines that a thread resumes, laid end to end, are a clock. The clock is cut into periods
// of `wait_period`, with one point drawn in each, uniformly. A wait of at least two periods is kept out of this clock
// and sampled with its own length as weight; any other is sampled with the weight of one period for each point inside.
// So the expected weight of every wait is its length: the points have density 1 / period everywhere, whatever came
// before. The period is doubled when more samples come than asked for, halved when far fewer do: by the past only,
// so the expectation stays as it is. (Cost of the common case, a short wait without a point: one
// subtraction.)
//
// The stack is walked from where the coroutine parked, by the thread that resumes it, right before it goes on: until
// then the stack does not change. The walk runs on the spare stack, not on the switching coroutine's stack, which may
// be small.
#pragma once

#include "signal/thread.h"

// Samples per second and thread to aim at, and the shortest period that gives them; from the sampler's frequency.
void gp_wait_samples_set_frequency(unsigned hz);

// Add or remove a user of waits in samples: wall-clock profiles, a capture. While there is none, the clock goes on and
// nothing is walked. Signals: safe.
void gp_wait_samples_want(int change);

// Begin a thread's clock. Signals: safe.
void gp_wait_samples_begin(gp_thread_t *thread);
