// SPDX-License-Identifier: MIT
// Exact mode for Python: CPython calls back at each call and return, and the recorder counts them.
//
// Model: CPython has one profile function a thread (before 3.12 cProfile uses it, too). While a recorder of exact mode
// runs, ours is in front of the one that was there before, which is called by it and gets the thread back at the first
// event after the last recorder has stopped. Meanwhile sys.setprofile() and cProfile's enable() and disable() find the
// thread as if they were alone; what they leave there is called from then on. A tool that does not use these takes the
// thread away: calls are missing then. Caller holds the interpreter lock everywhere, except where said.
#pragma once

#include <stdbool.h>

// A recorder has started: have the calling thread's events, or all threads' and those of threads to come. Idempotent.
void gp_call_events_start(bool everywhere);

// A module has been imported while a recorder runs: another profiler, perhaps.
void gp_call_events_look(void);

// The calling thread begins, and ends, a call that another one handed over.
void gp_call_events_enter_call(void);
void gp_call_events_leave_call(void);

// Has another tool taken the calling thread away? Any thread that holds the interpreter lock.
bool gp_call_events_are_taken(void);
