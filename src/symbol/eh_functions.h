// SPDX-License-Identifier: MIT
// The functions that .eh_frame knows: where each starts and ends, without a name. Stripped files have .eh_frame, too.
//
// Threads: one at a time while it is loaded, any number afterwards. Signals: not safe.
// Source: LSB Core, "Exception Frames"; DWARF 4, 6.4. The encodings that linkers and assemblers write are read: a
// search table of sdata4 relative to its section, addresses as sdata4 relative to their place.
#pragma once

#include "symbol/elf_file.h"

typedef struct gp_eh_function { // code [lo, hi)
    uint64_t lo, hi;
} gp_eh_function_t;

typedef struct gp_eh_functions { // zero-initialized = none
    gp_eh_function_t *items;     // ascending
    size_t count;
} gp_eh_functions_t;

// Load them; what cannot be read is left out.
void gp_eh_functions_load(gp_eh_functions_t *functions, const gp_elf_t *elf);

// The function that holds `address`, or NULL.
const gp_eh_function_t *gp_eh_functions_find(const gp_eh_functions_t *functions, uint64_t address);

// Where code that starts at `address` and has no size ends at the latest: the end of its function,
// else the start of the next one, else `end`.
uint64_t gp_eh_functions_limit(const gp_eh_functions_t *functions, uint64_t address, uint64_t end);

void gp_eh_functions_free(gp_eh_functions_t *functions);
