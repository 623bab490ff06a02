// SPDX-License-Identifier: MIT
// The ledgers of all live coroutines, for another process. Control's thread only.
#pragma once

#include <stdint.h>

// Write gp_control_row_t[*rows] to a file without a name; *coroutines: those that are no thread's own stack.
// Returns its descriptor, or a negative errno value. Cost: ~0.3 us a coroutine; the drain lock is held for 1,024 of
// them at a time.
int gp_control_rows(uint64_t *rows, uint64_t *coroutines);
