// SPDX-License-Identifier: MIT
// The process that the core's state belongs to. A vfork child, or one of a bare clone(), runs on the same or on copied
// memory without being that process: it must leave the state alone.
#pragma once

#include <stdbool.h>

// The state belongs to the calling process from now on: when the library is loaded, and in a forked child.
void gp_process_claim(void);

// Does the state belong to the calling process? Signals: safe. Cost: one system call.
bool gp_process_is_mine(void);

// The calling thread is about to run, or has run, the program's fork handlers: it holds what starting and stopping
// needs.
void gp_process_fork_begins(void);
void gp_process_fork_ends(void);

// Does the state belong to the calling process, and is this none of its fork handlers? Signals: safe. Cost: one system
// call.
bool gp_process_is_open(void);
