// SPDX-License-Identifier: MIT
// A step by one frame, the slow and complete way.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/expr.h"
#include "unwind/packed_row.h"
#include "unwind/stack_read.h"

enum gp_step {
    GP_STEP_OK,
    GP_STEP_END,       // the stack's bottom, clean
    GP_STEP_LOST,      // no rule that can be trusted
    GP_STEP_NEED_REGS, // a register is needed that is not known
};

// A frame with all registers followed from the leaf. `exact`: pc is an interrupted one, not a return address.
typedef struct gp_unwind_cursor {
    gp_regfile_t regs;
    bool exact;
} gp_unwind_cursor_t;

// Replace the registers of `cursor` by those of its caller. Not changed unless GP_STEP_OK is
// returned. Signals: safe. Cost: 0.3-1 us.
enum gp_step gp_step_full(gp_unwind_cursor_t *cursor, gp_stack_memory_t *stack);

// The registers that a packed row speaks of.
typedef struct gp_frame {
    uintptr_t pc, sp, fp, lr;
    bool exact;
} gp_frame_t;

// Step by a packed row that is neither special nor volatile, or by GP_SPECIAL_REALIGN.
enum gp_step gp_step_packed(gp_packed_row_t row, gp_frame_t *frame, gp_stack_memory_t *stack);

// Step out of code without a row, by the frame pointer if it can be trusted: inside the stack,
// above the stack pointer, and the word beside it is a return address, or in code that no module has. Signals: safe.
enum gp_step gp_step_fallback(gp_frame_t *frame, gp_stack_memory_t *stack);
