// SPDX-License-Identifier: MIT
// The sampler: installs the handler, gives every thread a timer (thread_timers.h), and takes it all back when no
// profile runs any more.
//
// Users acquire and release it; it goes on for GP_SAMPLER_LINGER_NS after the last release, because requests come one
// after the other. The collector ends it. Lock order: src/core/signal/SIGNALS.md.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "model/kinds.h"
#include "signal/thread.h"

#define GP_SAMPLER_LINGER_NS 500000000ull

// Take the sampler lock, and give it back.
void gp_sampler_enter(void);
void gp_sampler_leave(void);

// The host takes the sampling signal for itself: go on by another; where there is none, stop until it gives the signal
// back. Signals: not safe.
void gp_sampler_yield(void);
bool gp_sampler_has_yielded(void);

// Is another handler where ours was, installed past the interposed calls (host_signal.c)? Then the same. Collector
// only.
void gp_sampler_look_at_signal(void);

// Does sampling go on in children that are forked? Sampling does so by default. Before the first fork.
void gp_sampler_follow_forks(bool follow);

// In a forked child, which may not be one of this process' (process_id.h): is it to be profiled?
bool gp_sampler_follows_forks(void);

// Start sampling, or join in, at `frequency_hz` or above.
// Returns 0; -EBUSY (the host handles every signal that would do), -ENOSYS (no engine works), -EAGAIN, -ENOMEM.
int gp_sampler_acquire(unsigned frequency_hz);
void gp_sampler_release(unsigned frequency_hz);

// The same for a user that lets sampling rest, and joins a rest. `release` belongs to it.
int gp_sampler_acquire_patiently(unsigned frequency_hz);
void gp_sampler_release_patiently(unsigned frequency_hz);

// May sampling rest (signal/rest.h)? Not where a user is impatient, or nothing is sampled.
bool gp_sampler_may_rest(void);

// Begin a rest: from here on it is as if nothing were profiled, but for what rest.h says. Returns whether it has begun.
bool gp_sampler_rest(void);

// End it, unless that was done: by gp_sampler_acquire(), or the last release. Returns 0, or an error as of
// gp_sampler_acquire(): the recording then stays without samples; -EAGAIN: try again.
int gp_sampler_resume(void);

// A user of *wish wants `to` Hz from now on, and releases that. The interval under way is not cut short. Where *wish is
// 0, it has left.
void gp_sampler_change_wish(_Atomic unsigned *wish, unsigned to);

// Samples are taken at `hz` at most from now on, whatever is wanted: what the budget leaves. Weights stay right. The
// interval under way is not cut short: no system call for each thread.
void gp_sampler_limit(unsigned hz);

// The present rate, 0 = nothing is sampled. wanted: what it would be without the limit.
unsigned gp_sampler_frequency(unsigned *wanted);

// Stop if it was not used for a while. Collector only.
void gp_sampler_stop_if_idle(void);

// Stop at once, where nothing uses it, and take the signal's handler away. Returns whether it is so.
bool gp_sampler_end_unused(void);

// Stop for good, profiles and recordings or not: the process is left (coro/process_id.h).
void gp_sampler_end(void);

// Give threads timers that have none (host closed descriptors, threads created past the hook). Cost: ~20 us and 1 us a
// thread.
void gp_sampler_look_for_threads(void);

// Let the calling thread's time count from now: what it did so far was greenprof's start.
void gp_sampler_begin_here(void);

// Before exec of this process' image: see gp_timers_before_exec().
void gp_sampler_before_exec(void);

// Around fork, on the forking thread (see process.c).
//   until: on CLOCK_MONOTONIC. Returns false where the lock was not to be had until then.
bool gp_sampler_enter_until(const struct timespec *until);
void gp_sampler_restart_in_child(void);
