// SPDX-License-Identifier: MIT
// From a program counter to the row that governs it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi.h"
#include "unwind/module.h"

// Find the FDE of `pc` in .eh_frame, and the section that it is to be read with. Returns false where there is none.
bool gp_fde_find(const gp_eh_index_t *eh, uintptr_t pc, gp_cfi_section_t *section, gp_fde_t *fde);

// Compute the row for `pc` from the module's .eh_frame, else from its prepared .debug_frame. Returns false where
// neither covers `pc`. Signals: safe. Cost: 0.2-0.5 us, more where pages are cold.
bool gp_fde_row(const gp_unwind_module_t *module, uintptr_t pc, gp_row_t *row);
