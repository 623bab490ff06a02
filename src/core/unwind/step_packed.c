// SPDX-License-Identifier: MIT
// Steps by packed rows, and by the frame pointer where there is no row.
#include "unwind/generated.h"
#include "unwind/leaf.h"
#include "unwind/resolve.h"
#include "unwind/step.h"

enum { WORD = sizeof(uintptr_t) };

// A frame ends above the one it called; only an interrupted leaf may have no frame at all.
static bool step_packed_cfa_ok(const gp_frame_t *frame, const gp_stack_memory_t *stack, uintptr_t cfa)
{
    return cfa > frame->sp - frame->exact && cfa <= stack->hi && cfa % WORD == 0;
}

static enum gp_step step_packed_read_ra(gp_packed_row_t row, const gp_frame_t *frame, gp_stack_memory_t *stack,
                                        uintptr_t cfa, uintptr_t *ra)
{
    if (gp_row_ra(row) == 0) {
        *ra = frame->lr;
        return GP_RA_IN_REGISTER && frame->exact ? GP_STEP_OK : GP_STEP_LOST;
    }
    return gp_stack_read(stack, cfa - gp_row_ra(row) * WORD, ra) ? GP_STEP_OK : GP_STEP_LOST;
}

static enum gp_step step_packed_realign(unsigned slot, gp_frame_t *frame, gp_stack_memory_t *stack)
{
    uintptr_t cfa, fp, ra;
    if (!gp_stack_read(stack, frame->fp - slot * WORD, &cfa) || !gp_stack_read(stack, frame->fp, &fp) ||
        !step_packed_cfa_ok(frame, stack, cfa) || !gp_stack_read(stack, cfa - WORD, &ra))
        return GP_STEP_LOST;
    *frame = (gp_frame_t){.pc = gp_arch_strip(ra), .sp = cfa, .fp = fp};
    return GP_STEP_OK;
}

enum gp_step gp_step_packed(gp_packed_row_t row, gp_frame_t *frame, gp_stack_memory_t *stack)
{
    if (gp_row_kind(row) == GP_ROW_SPECIAL)
        return step_packed_realign(gp_row_argument(row), frame, stack);
    uintptr_t base = gp_row_kind(row) == GP_ROW_SP ? frame->sp : frame->fp;
    uintptr_t cfa = base + (uintptr_t)gp_row_off(row) * WORD;
    uintptr_t fp = frame->fp, ra;
    if (!step_packed_cfa_ok(frame, stack, cfa) || step_packed_read_ra(row, frame, stack, cfa, &ra) != GP_STEP_OK ||
        (gp_row_fp(row) != 0 && !gp_stack_read(stack, cfa - gp_row_fp(row) * WORD, &fp)))
        return GP_STEP_LOST;
    *frame = (gp_frame_t){.pc = gp_arch_strip(ra), .sp = cfa, .fp = fp};
    return GP_STEP_OK;
}

// The outermost frame has no frame pointer (psABI), and need not have been called: Go's goroutines return to the middle
// of a function.
static bool step_packed_is_fixed_code(uintptr_t pc)
{
    gp_unwind_module_t module;
    gp_location_t where;
    return gp_addr_plausible(pc) && gp_module_locate(pc, &where) && gp_module_is_fixed(where.link_map) &&
           gp_module_find(pc, &module) != GP_MODULE_NONE;
}

// Both processors lay a frame record out alike: the caller's frame pointer, then the return address.
enum gp_step gp_step_fallback(gp_frame_t *frame, gp_stack_memory_t *stack)
{
    uintptr_t fp = frame->fp, next, ra;
    if ((frame->exact || !GP_LIBC_HAS_ROWS) && gp_step_leaf(frame, stack) == GP_STEP_OK)
        return GP_STEP_OK;
    if (fp < frame->sp || !gp_stack_read(stack, fp, &next) || !gp_stack_read(stack, fp + WORD, &ra))
        return GP_STEP_LOST;
    ra = gp_arch_strip(ra);
    if (!gp_is_return_address(ra) && !gp_generated_has(ra - 1))
        return next == 0 && step_packed_is_fixed_code(ra) ? GP_STEP_END : GP_STEP_LOST;
    uintptr_t sp = fp + 2 * WORD;
    if (GP_RECORD_AT_SP && next > sp && next < stack->hi)
        sp = next;
    *frame = (gp_frame_t){.pc = ra, .sp = sp, .fp = next};
    return GP_STEP_OK;
}
