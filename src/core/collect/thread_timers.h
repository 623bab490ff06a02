// SPDX-License-Identifier: MIT
// The timers of threads, by which they are sampled: each thread has one, of the engine that was chosen.
//
// Threads: where nothing else is said, under the sampler's lock (sampler.h). Signals: not safe. Cost: a system call or
// two a timer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/kinds.h"
#include "signal/thread.h"

#define GP_TIMERS_SOON_NS 1000000u

// Samples per second and thread that timers are set to; 0 = nothing is sampled.
unsigned gp_timers_frequency(void);

// Use only this engine (by name); before the first start. Returns 0 or -EINVAL.
int gp_timers_choose_engine(const char *name);

enum gp_engine gp_timers_engine(void); // any thread

// Give the calling thread its timer, with the chosen engine or the first that works; later threads get theirs as well.
// Returns 0 or why there is none; then nothing is sampled.
int gp_timers_start(gp_thread_t *self, unsigned hz);
int gp_timers_start_again(gp_thread_t *self); // in a forked child: timers stay with the parent

// Give every thread one: all of them; or those that have none (host closed descriptors, threads created past the hook).
void gp_timers_give_all(void);
void gp_timers_give_missing(void);

// Take them all away.
void gp_timers_stop(void);

// The sampling signal is another one.
void gp_timers_renew(void);

//   at_once: a longer interval under way ends as well, at the cost of a system call for each thread that has
//            one. A shorter interval ends by itself: profiles that start and stop one after the other cost none.
void gp_timers_change(unsigned hz, bool at_once);

// Have each working thread sampled each GP_TIMERS_SOON_NS, until the next change: its accounts are settled when a rest
// begins. Collector only; without the sampler's lock.
void gp_timers_sample_soon(void);

// Has one of them used more than `ns` since its account was settled? Cost: ~0.5 us a thread.
bool gp_timers_any_is_unsettled(uint64_t ns);

// Take the timer of a thread that is gone away. Collector only; without the sampler's lock.
void gp_timers_disarm(gp_thread_t *thread);

// Around exec of this process' image: take the calling thread's away, give it back when exec failed (without the
// sampler's lock).
void gp_timers_before_exec(void);
void gp_timers_after_failed_exec(void);

// Around fork, on the forking thread (see process.c); without the sampler's lock.
void gp_timers_hold(void); // and no sampling signal from here on
void gp_timers_abandon(void);
void gp_timers_let_go(void);
