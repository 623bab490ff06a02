// SPDX-License-Identifier: MIT
// Numbers as people write them, read and written with a point whatever the program's locale is: strtod() and printf()
// take the decimal sign from there.
//
// Threads: any. Signals: safe.
#pragma once

#include <stdint.h>

enum { GP_NUMBER_SIZE = 32 };

// Read "12", "1.5", ".5", "1e-3", with a sign or without.
//   end: set behind it, or to `text` where there is none.
// Returns the number; 0 where there is none.
double gp_number_read(const char *text, const char **end);

// Write value / 10^decimals without zeros at its end: 12500, 4 is "1.25".
//   decimals: 0 to 19.
// Returns `out`.
const char *gp_number_write(char out[GP_NUMBER_SIZE], uint64_t value, unsigned decimals);
