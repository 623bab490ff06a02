// SPDX-License-Identifier: MIT
// The pacer: a thread of greenprof's own that sends the signals of the clock engine `monotonic`.
//
// Model: where a timer is due, its thread is sent the signal if it runs, or would if it were let. One that waits is
// left alone, so that no call of the program's is interrupted after it has waited: what is interrupted on the way into
// its wait is made again (signal/restart.h). Time is not lost, it is in the weight of the next sample; and as moments
// are drawn on the wall clock, a running thread is hit in proportion to its time. It has a table of descriptors of its
// own, which is empty: what it opens takes no number of the program's.
#ifndef GP_COLLECT_PACER_H
#define GP_COLLECT_PACER_H

// Start it, if it does not run yet. Caller holds the sampler's lock. Returns 0 or a negative errno value.
int gp_pacer_start(void);

// In a forked child: it is the parent's.
void gp_pacer_after_fork(void);

#endif
