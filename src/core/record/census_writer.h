// SPDX-License-Identifier: MIT
// Writing a census as a capture file of its own.
#pragma once

#include "record/census.h"

// Take a census and write it, under a temporary name in the same directory that is then renamed; what is no regular
// file (a pipe) is written directly. Holds the drain lock while it is taken, not while it is written.
//   stand: see census.h.
// Returns 0 or a negative errno value; nothing is left behind on failure. Collector's thread only.
int gp_census_write(const char *path, const gp_census_stand_t *stand);
