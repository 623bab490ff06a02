// SPDX-License-Identifier: MIT
// Where ordinary threads sleep (without coroutines), for sinks that look at the wall clock of threads too.
//
// Model: as in sleep_scan.h the collector looks at a thread from outside. The thread's CPU clock tells two cases apart.
// A clock that stood still since the last look: the thread sleeps the same sleep, which has all of the time. A clock
// that went on: the last sleep is over, and another may have begun; each has half of the time, which is right on
// average, whether a sleep lasts for many looks or there are many sleeps between two looks. So a long sleep may be
// looked at less and less often: minutes of sleep cost a look a second. A round looks at so many threads at most; the
// others are first in the next one, and lose nothing but detail. Nothing is done to the thread.
//
// Caller holds the drain lock everywhere. Collector only. Signals: not safe.
#pragma once

#include "collect/sink.h"

// In a forked child.
void gp_thread_sleeps_after_fork(void);

// A round of looks begins. is_wanted: any sink wants to know.
void gp_thread_sleeps_begin_round(bool is_wanted);

// Is the thread an ordinary one, with its turn now? Cost: ~5 ns.
bool gp_thread_sleeps_is_due(gp_thread_t *thread, uint64_t now);

// Look at a thread, if it has its turn. Returns whether the thread is an ordinary one, looked at here. Cost: ~1 us, ~10
// us where it sleeps.
bool gp_thread_sleeps_look(gp_thread_t *thread, uint64_t now);

// No look follows: the thread, or the capture, ends. The sleep of the last look has what is due to it.
void gp_thread_sleeps_close(gp_thread_t *thread);

// The thread's block is another's from here on.
void gp_thread_sleeps_forget(gp_thread_t *thread);
