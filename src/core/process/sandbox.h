// SPDX-License-Identifier: MIT
// Filters of system calls, and the strict mode (seccomp), that the program enters after its start.
//
// Model: the filter is run for every call of greenprof's (base/filter_calls.h) before it is installed. Where it lets
// them be, or fail as they may, greenprof's threads step aside and come back under it. Where it kills for one, or has
// another process or a handler answer, recording ends before: for the whole process where its first thread or all
// threads enter the filter, else for the calling thread, which is left alone. A filter that is there before the program
// cannot be read: a child rehearses the calls. A filter entered by a system call of the program's own is not seen.
//
// Threads: any of the program's. Signals: as aside.h.
#pragma once

#include <stdbool.h>

// Is the process, as it is loaded, under a filter that kills for a call of greenprof's? Threads: the only one. Cost:
// reads a file of /proc; with a filter, a fork and a hundred system calls.
//   can_say: set to whether gp_closing_line_say_sandboxed() makes none of them.
bool gp_sandbox_kills_already(bool *can_say);

// Is prctl() with these arguments a way into a sandbox?
bool gp_sandbox_is_entered_by_prctl(const long a[5]);

// Make the call, SYS_prctl or SYS_seccomp with these arguments. Returns and sets errno as syscall() does.
long gp_sandbox_enter(long number, const long a[5]);
