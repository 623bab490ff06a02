// SPDX-License-Identifier: MIT
// A census at a fatal signal: what was alive, and doing what, when the program crashed.
//
// Model: the handler, on the thread that crashed, notes where it stood, wakes the collector and waits for it, two
// seconds at most; then the signal does what it would have done. Only signals without a handler are taken; a program
// that installs a handler later has it instead of ours.
#pragma once

#include <stdbool.h>

// Install the handlers if GREENPROF_CENSUS is set. Returns whether it is.
bool gp_census_fatal_prepare(void);

// Take the census if a fatal signal came in. Collector's thread only.
void gp_census_fatal_serve(void);
