// SPDX-License-Identifier: MIT
// Coroutines that keep their thread, by the latest census of a capture.
#pragma once

#include "report/input.h"

// A line for each that had kept its thread from others for a second or more when it was looked at, three at most; none
// where the program ended by itself. in_header: of a report, else at the head of the census itself.
void gp_census_print_held(const gp_input_t *source, bool in_header);
