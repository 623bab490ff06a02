// SPDX-License-Identifier: MIT
// Waking control's thread up: by the signal of GREENPROF_TOGGLE_SIGNAL, and after an exec that failed.
//
// A pipe, because the thread waits for connections at the same time.
#pragma once

#include <stdbool.h>

#include "base/kept_fd.h"

extern gp_kept_fd_t gp_control_bell; // the end that is read; fd -1 = there is none

// Is the signal a valid one that the program does not handle? Then have it. At load.
void gp_control_toggle_begin(void);

// Make the pipe, in the place of what there was; in a forked child, close the parent's.
void gp_control_bell_open(void);
void gp_control_bell_forget(void);

// Is it an end of the pipe? Signals: safe; changes errno.
bool gp_control_bell_owns(int fd);

// Ring. Signals: safe.
void gp_control_bell_ring(void);

// How often the signal came in since the last call; the bell is silent.
unsigned gp_control_toggle_take(void);
