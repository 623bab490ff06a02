// SPDX-License-Identifier: MIT
// Keeps the samples of every thread's latest slice, until it is known whether that slice was long (see signal/hog.h).
// Caller holds the drain lock everywhere.
#pragma once

#include "collect/sink.h"

// A sample of a slice; what was kept of the thread's slice before is forgotten. runs: on the CPU, not asleep.
void gp_hog_keep_sample(gp_thread_t *thread, const gp_sample_t *sample, const gp_stack_t *stack, bool runs);

// The samples of the slice that began at `start` (ticks): gp_hog_sample_t[*count], valid until the next call.
const gp_hog_sample_t *gp_hog_samples(gp_thread_t *thread, uint64_t start, size_t *count);

// The thread's latest stack on the CPU, as sampled in the slice from `start` (ticks) on, and its time; depth 0 = none.
// Valid until the thread's next sample.
gp_stack_t gp_hog_latest(gp_thread_t *thread, uint64_t start, uint64_t *ticks);

// The thread is over.
void gp_hog_forget(gp_thread_t *thread);
