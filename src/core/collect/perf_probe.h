// SPDX-License-Identifier: MIT
// Whether perf_event_open() may be called at all: filters of system calls (seccomp) may end the process for it.
#pragma once

#include <stdbool.h>

// Is the process under a filter? Threads: one at a time. Signals: not safe. Cost: reads a file of /proc.
bool gp_perf_has_filter(void);

// Would perf_event_open() end this process? Where the process has a filter, a child on the same memory tries it.
// A filter that comes after the first call is not seen.
// Threads: one at a time. Signals: not safe. Cost: the first call reads a file of /proc; with a filter, a vfork.
bool gp_perf_is_fatal(void);

// Say that perf_event_open() is fatal from now on: no event is opened any more. Any thread.
void gp_perf_forbid(void);
