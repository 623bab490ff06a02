// SPDX-License-Identifier: MIT
// A step by the full row: every register's rule, expressions, signal frames.
#include <string.h>

#include "unwind/leaf.h"
#include "unwind/resolve.h"
#include "unwind/step.h"
#include "unwind/switch_rules.h"

static bool step_full_known(const gp_regfile_t *regs, unsigned reg)
{
    return regs->known >> reg & 1;
}

static void step_full_set(gp_regfile_t *regs, unsigned reg, uintptr_t value)
{
    regs->reg[reg] = value;
    regs->known |= 1ull << reg;
}

static enum gp_step step_full_from_expr(enum gp_expr_status status)
{
    return status == GP_EXPR_OK ? GP_STEP_OK : status == GP_EXPR_UNKNOWN_REG ? GP_STEP_NEED_REGS : GP_STEP_LOST;
}

static enum gp_step step_full_find_cfa(const gp_row_t *row, const gp_regfile_t *regs, gp_stack_memory_t *stack,
                                       uintptr_t *cfa)
{
    if (row->cfa_is_expr)
        return step_full_from_expr(gp_expr_eval(row->base + row->cfa_offset, row->expr_limit, regs, stack, NULL, cfa));
    if (!step_full_known(regs, row->cfa_reg))
        return GP_STEP_NEED_REGS;
    *cfa = regs->reg[row->cfa_reg] + (uintptr_t)row->cfa_offset;
    return GP_STEP_OK;
}

// gcc forgets, in the epilogue of a function with a realigned stack, to say that registers saved relative to the frame
// pointer have been popped. While they are saved the frame pointer is this frame's own: between its stack pointer and
// its CFA.
static bool step_full_already_popped(const gp_row_t *row, const gp_rule_t *rule, const gp_regfile_t *regs,
                                     uintptr_t cfa)
{
    enum { OP_BREG0 = 0x70 };
    uintptr_t fp = regs->reg[GP_REG_FP];
    const uint8_t *block = row->base + rule->value;
    return !row->cfa_is_expr && block[0] >= 2 && block[1] == OP_BREG0 + GP_REG_FP && step_full_known(regs, GP_REG_FP) &&
           (fp < regs->reg[GP_REG_SP] || fp >= cfa);
}

// The value of one register in the caller. Returns false when it is lost.
static bool step_full_find_register(const gp_row_t *row, unsigned reg, const gp_regfile_t *regs,
                                    gp_stack_memory_t *stack, uintptr_t cfa, uintptr_t *value)
{
    const gp_rule_t *rule = &row->regs[reg];
    uintptr_t at = cfa + (uintptr_t)(intptr_t)rule->value;
    switch (rule->kind) {
    case GP_RULE_SAME:
        *value = regs->reg[reg];
        return step_full_known(regs, reg);
    case GP_RULE_OFFSET:
        return gp_stack_read(stack, at, value);
    case GP_RULE_VAL_OFFSET:
        *value = at;
        return true;
    case GP_RULE_REGISTER:
        if ((uint32_t)rule->value >= GP_REG_COUNT || !step_full_known(regs, (unsigned)rule->value))
            return false;
        *value = regs->reg[rule->value];
        return true;
    case GP_RULE_EXPR:
        if (step_full_already_popped(row, rule, regs, cfa)) {
            *value = regs->reg[reg];
            return step_full_known(regs, reg);
        }
        // fall through
    case GP_RULE_VAL_EXPR:
        if (gp_expr_eval(row->base + rule->value, row->expr_limit, regs, stack, &cfa, &at) != GP_EXPR_OK)
            return false;
        *value = at;
        return rule->kind == GP_RULE_VAL_EXPR || gp_stack_read(stack, at, value);
    default:
        return false;
    }
}

static bool step_full_find_ra(const gp_row_t *row, const gp_unwind_cursor_t *cursor, gp_stack_memory_t *stack,
                              uintptr_t cfa, uintptr_t *ra)
{
    // Only a leaf's return address may still be in its register.
    if (row->regs[row->ra_reg].kind == GP_RULE_SAME && !(GP_RA_IN_REGISTER && cursor->exact))
        return false;
    return step_full_find_register(row, row->ra_reg, &cursor->regs, stack, cfa, ra);
}

// The caller's stack pointer must lie above this frame's, on the same stack. That is the CFA,
// unless the row says otherwise: a signal frame, or __longjmp about to jump. (A signal handler's
// frame on an alternate stack ends the walk here: its caller is on another stack.)
static bool step_full_sp_ok(const gp_unwind_cursor_t *caller, const gp_unwind_cursor_t *cursor,
                            const gp_stack_memory_t *stack)
{
    uintptr_t sp = caller->regs.reg[GP_REG_SP];
    return step_full_known(&caller->regs, GP_REG_SP) && sp > cursor->regs.reg[GP_REG_SP] - cursor->exact &&
           sp <= stack->hi && sp % sizeof sp == 0;
}

// _Unwind_RaiseException and _Unwind_Resume write the landing pad over their own return address, some fifty
// instructions before they go there: the instruction before it is then no call of theirs.
static bool step_full_is_overwritten(const gp_row_t *row, uintptr_t ra)
{
    return row->regs[GP_REG_EH_DATA].kind == GP_RULE_OFFSET && !row->signal_frame && !gp_call_may_enter(ra, row->start);
}

static enum gp_step step_full_apply(const gp_row_t *row, gp_unwind_cursor_t *cursor, gp_stack_memory_t *stack)
{
    gp_unwind_cursor_t caller = {.exact = row->signal_frame};
    uintptr_t cfa, value;
    enum gp_step status = step_full_find_cfa(row, &cursor->regs, stack, &cfa);
    if (status != GP_STEP_OK)
        return status;
    if (row->regs[row->ra_reg].kind == GP_RULE_UNDEFINED)
        return GP_STEP_END;
    if (!step_full_find_ra(row, cursor, stack, cfa, &value) || step_full_is_overwritten(row, gp_arch_strip(value)))
        return GP_STEP_LOST;
    step_full_set(&caller.regs, GP_REG_PC, gp_arch_strip(value));
    for (unsigned reg = 0; reg < GP_REG_COUNT; reg++)
        if (reg != GP_REG_PC && step_full_find_register(row, reg, &cursor->regs, stack, cfa, &value))
            step_full_set(&caller.regs, reg, value);
    if (row->regs[GP_REG_SP].kind == GP_RULE_SAME)
        step_full_set(&caller.regs, GP_REG_SP, cfa);
    if (!step_full_sp_ok(&caller, cursor, stack))
        return GP_STEP_LOST;
    *cursor = caller;
    return GP_STEP_OK;
}

static enum gp_step step_full_without_row(gp_unwind_cursor_t *cursor, gp_stack_memory_t *stack,
                                          const gp_unwind_module_t *module)
{
    const gp_regfile_t *regs = &cursor->regs;
    gp_frame_t frame = {
        .pc = regs->reg[GP_REG_PC],
        .sp = regs->reg[GP_REG_SP],
        .fp = regs->reg[GP_REG_FP],
        .exact = cursor->exact,
    };
    gp_packed_row_t rule = 0;
    if (module != NULL && cursor->exact)
        rule = gp_switch_rule(frame.pc, module->text_lo, module->text_hi);
    enum gp_step status = rule != 0 ? gp_step_packed(rule, &frame, stack) : gp_step_fallback(&frame, stack);
    if (status == GP_STEP_OK) {
        memset(cursor, 0, sizeof *cursor);
        step_full_set(&cursor->regs, GP_REG_PC, frame.pc);
        step_full_set(&cursor->regs, GP_REG_SP, frame.sp);
        step_full_set(&cursor->regs, GP_REG_FP, frame.fp);
    }
    return status;
}

enum gp_step gp_step_full(gp_unwind_cursor_t *cursor, gp_stack_memory_t *stack)
{
    gp_unwind_module_t storage;
    const gp_unwind_module_t *module;
    gp_row_t row;
    uintptr_t pc = cursor->regs.reg[GP_REG_PC];
    if (gp_resolve_full(pc, !cursor->exact, &storage, &module, &row))
        return step_full_apply(&row, cursor, stack);
    return step_full_without_row(cursor, stack, module);
}
