// SPDX-License-Identifier: MIT
// The rule for the frame at a program counter, computed afresh: the walk's slow half, run once per cached pc.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/fde_index.h"
#include "unwind/packed_row.h"

// Does a registered coroutine entry have code in [lo, hi)? (entries.c)
bool gp_entry_meets(uintptr_t lo, uintptr_t hi);

// Find the row of the interrupted pc or, with `is_return`, of the return address `pc`, and cache it
// when the module allows. `*slot` is its slot or GP_CACHE_SLOTS, `*module` its descriptor or
// UINT32_MAX. Never GP_ROW_NONE; a volatile row is good for now. Signals: safe. Cost: 0.2-1 us.
gp_packed_row_t gp_resolve(uintptr_t pc, bool is_return, uint32_t *slot, uint32_t *module);

// Could `pc` be a return address: code of a module, right after a call?
bool gp_is_return_address(uintptr_t pc);

// The full row, for steps that a packed one cannot express. Returns false where there is none;
// `*module` is then still set if `pc` is a module's code, else NULL.
bool gp_resolve_full(uintptr_t pc, bool is_return, gp_unwind_module_t *storage, const gp_unwind_module_t **module,
                     gp_row_t *row);
