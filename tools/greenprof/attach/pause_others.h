// SPDX-License-Identifier: MIT
// The processors for greenprof's work in a crowded process, whose computing threads are stopped for a moment.
//
// Model: where hundreds of threads share two processors, each gets a hundredth of one, and so do the thread that is
// borrowed and greenprof's own: what takes 50 ms takes as many seconds. So those that are running or wait for a
// processor are stopped by ptrace(2), until greenprof has begun there, or is gone. Threads that sleep are left alone,
// also where they wake up meanwhile; so are greenprof's own, which are named after it. Where less threads compute than
// some for each processor, nothing is stopped.
//
// A possible holder of a lock that greenprof needs (safe_point.h) goes on at once, and is stopped later. Should another
// thread hold greenprof up, all go on after half a second, for as long. The kernel lets them go where this process
// ends. Signals to this process wait meanwhile.
//
// There is one at most. Nothing is said where threads cannot be stopped: it takes longer then. Where it is permitted,
// greenprof's threads go before others meanwhile (nice).
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// Stop the threads that compute, if there are many.
void gp_pause_others_begin(pid_t pid);

// The core is loaded now: its locks count, too.
void gp_pause_others_is_loaded(void);

// To be called while something is waited for.
void gp_pause_others_look(void);

// How long is to be waited until the next look, in milliseconds.
//   most_ms: what is returned where nothing is stopped.
int gp_pause_others_look_ms(int most_ms);

// Is this one stopped by us, or about to be?
bool gp_pause_others_holds(pid_t tid);

// Take a held and stopped thread over: it is the caller's from here on.
void gp_pause_others_give(pid_t tid);

// Let all go, as they were. Nothing where there is nothing to be done.
void gp_pause_others_end(void);
