// SPDX-License-Identifier: MIT
// What every command prints in the same way.
#pragma once

#include <stdint.h>

// Print a text so that a terminal shows it and nothing else: control characters and bad UTF-8 replaced.
void gp_print_text(const char *text);

// Print nanoseconds as seconds with three decimals, right-aligned in `width`.
void gp_print_seconds(uint64_t ns, int width);

// The same as milliseconds.
void gp_print_ms(uint64_t ns, int width);
