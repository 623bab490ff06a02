// SPDX-License-Identifier: MIT
// From a program counter to the row that governs it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi.h"
#include "unwind/module.h"

// Compute the row for `pc` from the module's .eh_frame, else from its prepared .debug_frame. Returns false where
// neither covers `pc`. Signals: safe. Cost: 0.2-0.5 us, more where pages are cold.
bool gp_fde_row(const gp_module_t *module, uintptr_t pc, gp_row_t *row);
