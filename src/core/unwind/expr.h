// SPDX-License-Identifier: MIT
// DWARF expressions as call frame information uses them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/arch.h"
#include "unwind/stack_read.h"

// Registers of one frame. A bit of `known` tells which hold their value.
typedef struct gp_regfile {
    uintptr_t reg[GP_REG_COUNT];
    uint64_t known;
} gp_regfile_t;

enum gp_expr_status {
    GP_EXPR_OK,
    GP_EXPR_UNKNOWN_REG, // needs a register that is not known
    GP_EXPR_BAD,         // malformed, unsupported, or reads outside the stack
};

// Evaluate the block (ULEB128 length, then operations) at `block`. `initial` is pushed first where
// not NULL (the CFA, for register rules). Signals: safe. Source: DWARF 5 section 2.5.
enum gp_expr_status gp_expr_eval(const uint8_t *block, const uint8_t *limit, const gp_regfile_t *regs,
                                 gp_stack_memory_t *stack, const uintptr_t *initial, uintptr_t *result);
