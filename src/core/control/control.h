// SPDX-License-Identifier: MIT
// Switching from outside: what `greenprof start|stop|dump|status|top PID` talk to, and GREENPROF_TOGGLE_SIGNAL.
//
// Model: where GREENPROF_CONTROL or GREENPROF_TOGGLE_SIGNAL asks for it, the process has one more thread of greenprof's
// own. The thread sleeps in poll() without a time limit until a client connects or the signal comes in, and does
// everything itself: no thread of the program's waits for it. The socket is in a directory that is the user's alone
// (live/census_place.h), and takes only connections of the same user or root. A forked child has a socket of its own;
// before exec and at the end the file is removed.
#pragma once

#include <stdbool.h>

// Does the environment ask for it? And is nothing to be recorded before a command says so?
bool gp_control_is_wanted(void);
bool gp_control_is_stopped(void);

// Begin; at load.
void gp_control_start(void);

// Begin in a process that runs already. There is a socket on return, or nothing has begun. Control's thread does the
// work of attaching: `begin` before it takes requests, `look` now and then, `end` once GP_CONTROL_DETACH asks for it,
// or gp_control_leave(), where there is no way to ask. Both return 0 or a negative errno value.
typedef struct gp_control_attachment {
    void (*begin)(void), (*look)(void), (*end)(void);
} gp_control_attachment_t;

int gp_control_attach(const gp_control_attachment_t *attachment);
int gp_control_leave(void);

// Is there control's thread? A thread just leaving is waited for.
bool gp_control_is_running(void);

// Control's thread: was the process attached to, and take back what that has brought.
bool gp_control_is_attached(void);
void gp_control_end_attachment(void);

// In a forked child, after its locks are its own again.
void gp_control_in_child(void);

// Around exec. Signals: safe.
void gp_control_before_exec(void);
void gp_control_after_failed_exec(void);

// Is it a descriptor of control's own, that stays while the process does? Signals: safe; changes errno.
bool gp_control_owns(int fd);

// Control's thread looks whether it may stay. Signals: safe.
void gp_control_wake(void);

// The process ends: there is no socket any more. Signals: safe.
void gp_control_end(void);
