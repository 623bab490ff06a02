// SPDX-License-Identifier: MIT
// Output that every command prints in the same way.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Print a text so that a terminal shows it and nothing else: control characters and bad UTF-8 replaced.
void gp_print_text(const char *text);

// How wide the terminal is that standard output goes to; 0 = it goes to none.
size_t gp_print_columns(void);

// Print the end of a text, as much as `room` columns hold, behind ".." where that is not all; 0 = all of it.
void gp_print_tail(const char *text, size_t room);

// Print a name at the end of a line, behind `before` columns: on a terminal that is too narrow its end, which says
// most; all of it where there is hardly any room.
void gp_print_name(const char *text, size_t before);

// Print nanoseconds as seconds with three decimals, right-aligned in `width`.
void gp_print_seconds(uint64_t ns, int width);

// The same as milliseconds.
void gp_print_ms(uint64_t ns, int width);
