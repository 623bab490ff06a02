// SPDX-License-Identifier: MIT
// The capture of a whole process: what `greenprof run` starts through the environment.
//
//   GREENPROF_OUTPUT     path of the capture; %p is the process id. Unset: no capture.
//   GREENPROF_FREQUENCY  samples per second of CPU time and thread, default 1000
//   GREENPROF_ENGINE     perf, cpu or monotonic; default: the first that works
//   GREENPROF_DEPTH      frames kept of a stack, 2 to 512 (default); holds for profiles as well
//   GREENPROF_SESSION    32 hex digits that all captures of one run share
//   GREENPROF_PID        the process that writes GREENPROF_OUTPUT itself; any other appends its process id to the name
#ifndef GP_SESSION_SESSION_H
#define GP_SESSION_SESSION_H

// Start the capture that the environment asks for, if any. Returns 0 or a negative errno value.
int gp_session_start(void);

// What the process does, for the capture if there is one. In a forked child, after sampling was set up anew, under the
// sampler lock; before an exec; and at exit() or _exit(), which may come from a signal handler.
void gp_session_in_child(void);
void gp_session_before_exec(void);
void gp_session_ending(void);

#endif
