// SPDX-License-Identifier: MIT
// Which signal samples are taken by.
//
// SIGPROF, unless the host handles or ignores it or GREENPROF_SIGNAL names another: then the first of the others
// without a handler. The others are SIGSTKFLT, which nothing on Linux raises, and then real-time signals from the last
// one down. Real-time signals are the second choice because they queue: while a thread blocks one, every period adds to
// its queue, and a full queue makes the engine `perf` kill (signal/clock_perf.c), so `cpu` is used with them.
#pragma once

#include <signal.h>
#include <stdbool.h>

// The present one. Threads: any. Signals: safe.
int gp_sampling_signal(void);

// Are samples taken by the present signal, so threads should let it through? Signals: safe.
bool gp_sampling_signal_is_wanted(void);

// Make `set` hold the present one alone.
void gp_sampling_signal_set(sigset_t *set);

// Is gp_handler() installed for it?
bool gp_sampling_signal_is_ours(void);

// Where the calling thread blocks that signal one may be pending, and would stay so: take it off.
void gp_sampling_signal_take_off(int number);

// Install gp_handler() for the present one, or for another where the host handles that.
//   not_this: do not take this one, 0 = any will do.
// Returns 0, -EBUSY where all are taken, or another negative errno value. Caller holds the sampler's lock.
int gp_sampling_signal_take(int not_this);

// The action of the present signal before ours: the default, or ignored.
void gp_sampling_signal_before(struct sigaction *action);

// Is there another than the present one to move to, of the usual two, that is neither handled nor ignored?
bool gp_sampling_signal_has_another(void);

// Take the handler away: what is pending is dropped, and the signal's action is what it was. There is no timer any
// more.
void gp_sampling_signal_give_back(void);

// Choose by name (signal_name.h), before the first is taken. Returns 0 or -EINVAL.
int gp_sampling_signal_choose(const char *text);
