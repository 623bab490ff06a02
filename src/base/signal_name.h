// SPDX-License-Identifier: MIT
// Signals by name, and which of them samples may be taken by.
#pragma once

// Names for gp_signal_by_name(), for messages.
#define GP_SIGNAL_NAMES "PROF, ALRM, IO, PWR, STKFLT, URG, USR1, USR2, VTALRM, WINCH, or RTMIN to RTMAX"

// The number of the signal called `text`: "SIGPROF", "PROF", "RTMIN+3", "RTMAX-1", or a number in decimal.
// Returns -EINVAL where there is none, and where it is one that says how a program fares (SEGV), ends (TERM), stops
// (TSTP) or what became of its children (CHLD): what the kernel or a user sends by it must go on doing what it does.
int gp_signal_by_name(const char *text);
