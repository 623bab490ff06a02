// SPDX-License-Identifier: MIT
// The sampling signal's handler. See SIGNALS.md for what it may reach.
#pragma once

#include <signal.h>

#include "signal/clock_engine.h"
#include "signal/sampling.h"

// Installed with SA_SIGINFO | SA_RESTART | SA_ONSTACK. Keeps errno. Bounded work.
void gp_handler(int signal_number, siginfo_t *info, void *context);

// The value of a signal by which a process of the same user asked for a census (GP_CENSUS_MAGIC); 0 = none did. Any
// thread may take that signal.
extern _Atomic uint64_t gp_handler_census;
