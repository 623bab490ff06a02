// SPDX-License-Identifier: MIT
// The capture of a whole process: what `greenprof run` starts through the environment.
#pragma once

#include <stdbool.h>

// Start the capture that the environment asks for, if any. Returns 0 or a negative errno value.
int gp_session_start(void);

// What the process does, for the capture if there is one. In a forked child, after sampling was set up anew, under the
// sampler lock; before an exec; and at exit() or _exit(), which may come from a signal handler.
void gp_session_in_child(void);
void gp_session_before_exec(void);
void gp_session_ending(void);

// Is there a writing thread; and wake it.
bool gp_session_writes(void);
void gp_session_wake(void);
