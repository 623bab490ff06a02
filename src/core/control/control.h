// SPDX-License-Identifier: MIT
// Switching from outside: what `greenprof start|stop|dump|status|top PID` talk to, and GREENPROF_TOGGLE_SIGNAL.
//
// Model: where GREENPROF_CONTROL or GREENPROF_TOGGLE_SIGNAL asks for it, the process has one more thread of
// greenprof's own. It sleeps in poll() without a time limit until something connects or the signal comes in, and does
// everything itself: no thread of the program's waits for it. The socket is in a directory that is the user's alone
// (capture/census_place.h), and takes only connections of the same user or root. A forked child has a socket of its
// own; before exec and at the end the file is removed.
#pragma once

#include <stdbool.h>

// Does the environment ask for it? And is nothing to be recorded before a command says so?
bool gp_control_is_wanted(void);
bool gp_control_is_stopped(void);

// Begin; at load.
void gp_control_start(void);

// In a forked child, after its locks are its own again.
void gp_control_in_child(void);

// Around exec. Signals: safe.
void gp_control_before_exec(void);
void gp_control_after_failed_exec(void);

// The process ends: there is no socket any more. Signals: safe.
void gp_control_end(void);
