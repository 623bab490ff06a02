// SPDX-License-Identifier: MIT
// A hint for code without names: how much time is in it, most of it where, and what would name it.
#pragma once

#include "input.h"

// Print a line, where it is much. Returns 0 or a negative errno value.
int gp_missing_symbols_print(const gp_input_t *source, const gp_report_t *report);

// "libz.so.1+0x1234", of libz.so.1: whether that is all there is to say of a frame.
bool gp_missing_symbols_frame(const gp_report_frame_t *frame);
