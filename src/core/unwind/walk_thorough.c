// SPDX-License-Identifier: MIT
// The thorough half of a walk: the interrupted frame, full rows, code without rows, the stack's bottom.
#include <string.h>

#include "unwind/generated.h"
#include "unwind/resolve.h"
#include "unwind/walk.h"

enum {
    // Bytes below the stack's end within which a number that is no address is a forged bottom.
    FORGED_NUMBER_SPAN = 1024,
    // The same for the start of a function that happens to follow another one's last call.
    FORGED_FUNCTION_SPAN = 256,
};

static void walk_thorough_set(gp_unwind_cursor_t *cursor, unsigned reg, uintptr_t value)
{
    cursor->regs.reg[reg] = value;
    cursor->regs.known |= 1ull << reg;
}

// The latest registers known in full: the walk's first ones unless it has met a signal frame, or already followed them,
// since.
static const gp_unwind_cursor_t *walk_thorough_base(gp_walk_t *w)
{
    const gp_unwind_regs_t *regs = w->start;
    if (w->base_known)
        return &w->base;
    w->base_known = true;
    w->base.exact = w->start_exact;
    w->base.regs.known = 0;
    if (regs->gp != NULL) {
        memcpy(w->base.regs.reg, regs->gp, sizeof w->base.regs.reg);
        w->base.regs.known = (1ull << GP_REG_COUNT) - 1;
    } else if (GP_RA_IN_REGISTER && w->start_exact) {
        walk_thorough_set(&w->base, GP_REG_RA, regs->lr);
    }
    walk_thorough_set(&w->base, GP_REG_FP, regs->fp);
    walk_thorough_set(&w->base, GP_REG_SP, regs->sp);
    walk_thorough_set(&w->base, GP_REG_PC, regs->pc);
    return &w->base;
}

static void walk_thorough_rebase(gp_walk_t *w, const gp_unwind_cursor_t *cursor)
{
    w->base = *cursor;
    w->base_known = true;
    w->base_steps = 0;
}

// Follow all registers from where they were last known up to the present frame.
static enum gp_step walk_thorough_replay(gp_walk_t *w, gp_unwind_cursor_t *cursor, unsigned steps)
{
    *cursor = *walk_thorough_base(w);
    for (unsigned i = 0; i < steps; i++)
        if (gp_step_full(cursor, &w->stack) != GP_STEP_OK)
            return GP_STEP_LOST;
    bool same = cursor->regs.reg[GP_REG_PC] == w->frame.pc && cursor->regs.reg[GP_REG_SP] == w->frame.sp;
    return same ? GP_STEP_OK : GP_STEP_LOST;
}

// Step by the full row, with as few registers as will do.
static enum gp_step walk_thorough_step_full(gp_walk_t *w)
{
    unsigned steps = w->base_steps;
    gp_unwind_cursor_t cursor = {.exact = w->frame.exact};
    walk_thorough_set(&cursor, GP_REG_PC, w->frame.pc);
    walk_thorough_set(&cursor, GP_REG_SP, w->frame.sp);
    walk_thorough_set(&cursor, GP_REG_FP, w->frame.fp);
    gp_walk_store(w, w->frame.pc - !w->frame.exact);
    enum gp_step status = gp_step_full(&cursor, &w->stack);
    if (status == GP_STEP_NEED_REGS) {
        status = walk_thorough_replay(w, &cursor, steps);
        status = status == GP_STEP_OK ? gp_step_full(&cursor, &w->stack) : status;
        if (status == GP_STEP_OK)
            walk_thorough_rebase(w,
                                 &cursor); // however many such frames a stack has, its registers are followed once
    } else if (status == GP_STEP_OK && cursor.exact) {
        walk_thorough_rebase(w, &cursor); // a signal frame holds every register
    }
    if (status == GP_STEP_OK) {
        w->frame = (gp_frame_t){
            .pc = cursor.regs.reg[GP_REG_PC],
            .sp = cursor.regs.reg[GP_REG_SP],
            .fp = cursor.regs.reg[GP_REG_FP],
            .lr = GP_RA_IN_REGISTER ? cursor.regs.reg[GP_REG_RA] : 0,
            .exact = cursor.exact,
        };
    }
    return status;
}

// Either a call that never returns is the last instruction of its function, or a coroutine's
// creator put the next function's address at the bottom of the stack (libcoro: abort, which
// Debian's libc has right after a call). The latter can only be where a stack ends.
static enum gp_step walk_thorough_step_last_call(gp_walk_t *w)
{
    if (w->stack.hi - w->frame.sp < FORGED_FUNCTION_SPAN)
        return GP_STEP_END;
    return walk_thorough_step_full(w);
}

static enum gp_step walk_thorough_step_packed(gp_walk_t *w)
{
    gp_walk_store(w, w->frame.pc - !w->frame.exact);
    return gp_walk_step_packed(w);
}

static enum gp_step walk_thorough_step_fallback(gp_walk_t *w)
{
    gp_walk_store(w, w->frame.pc - !w->frame.exact);
    return gp_step_fallback(&w->frame, &w->stack);
}

// No code at the pc: a bottom forged with a number instead of an address, code that a JIT made, or the walk went wrong.
// Only an interrupted pc is code for certain.
static enum gp_step walk_thorough_step_no_code(gp_walk_t *w)
{
    if (w->frame.exact || gp_generated_has(w->frame.pc - 1))
        return walk_thorough_step_fallback(w);
    bool forged = !gp_addr_plausible(w->frame.pc) && w->stack.hi - w->frame.sp < FORGED_NUMBER_SPAN;
    return forged || w->frame.pc == 0 ? GP_STEP_END : GP_STEP_LOST;
}

enum gp_step gp_walk_thorough(gp_walk_t *w)
{
    if (gp_row_kind(w->row) != GP_ROW_SPECIAL)
        return walk_thorough_step_packed(w);
    switch (gp_row_special_of(w->row)) {
    case GP_SPECIAL_END:
        gp_walk_store(w, w->frame.pc - !w->frame.exact);
        return GP_STEP_END;
    case GP_SPECIAL_HIDDEN:
        return GP_STEP_END;
    case GP_SPECIAL_NO_CALL:
        return GP_STEP_LOST;
    case GP_SPECIAL_NO_CODE:
        return walk_thorough_step_no_code(w);
    case GP_SPECIAL_REALIGN:
        return walk_thorough_step_packed(w);
    case GP_SPECIAL_LAST_CALL:
        return walk_thorough_step_last_call(w);
    case GP_SPECIAL_FULL:
        return walk_thorough_step_full(w);
    default: // GP_SPECIAL_NO_CFI
        return walk_thorough_step_fallback(w);
    }
}
