// SPDX-License-Identifier: MIT
// The line of an instruction, from a code object's location table.
// Source: CPython, Objects/locations.md (3.11 to 3.13).
#pragma once

#include <stddef.h>
#include <stdint.h>

// `table` uint8_t[len]; `index` of the instruction in units of two bytes, negative = none has run yet.
// Returns the line, 0 where the table says that there is none.
uint32_t gp_cpython_line(const uint8_t *table, size_t len, uint32_t first_line, int index);
