// SPDX-License-Identifier: MIT
// Failing allocations, one at a time; and blocks that are not freed. A test that has failing_memory.c is linked with
// -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=free.
#pragma once

extern long memory_until_failure; // allocations that still work; negative = all do
extern long memory_held;          // allocations that were not freed
