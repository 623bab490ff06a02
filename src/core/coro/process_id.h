// SPDX-License-Identifier: MIT
// The process that the core's state belongs to. A vfork child, or one of a bare clone(), runs on the same or on copied
// memory without being that process: it must leave the state alone.
#pragma once

#include <stdbool.h>

// The state belongs to the calling process from now on: when the library is loaded, and in a forked child.
void gp_process_claim(void);

// Does the state belong to the calling process? Signals: safe. Cost: one system call.
bool gp_process_is_mine(void);

// From here on nothing of greenprof's is done in the process, or by the calling thread, but what the program itself
// asks for: a system call may be the last one. For good; children and threads of those inherit it.
void gp_process_leave(void);
void gp_process_leave_thread(void);

// Is that so, for the calling thread? Signals: safe.
bool gp_process_is_left(void);

// The calling thread is about to run, or has run, the program's fork handlers.
void gp_process_fork_begins(void);
void gp_process_fork_ends(void);

// Before a lock under which memory is allocated: wait for the forks of other threads, as an allocator's fork handlers
// may hold its locks until they end. A fork whose handlers have taken long is waited for no longer: they may wait for
// this very thread. Cost: one load; while there is a fork at most 100 ms
// from its begin.
void gp_process_let_forks_by(void);

// Does the state belong to the calling process, and is this none of its fork handlers? Signals: safe. Cost: one system
// call.
bool gp_process_is_open(void);
