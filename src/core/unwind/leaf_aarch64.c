// SPDX-License-Identifier: MIT
#include "unwind/leaf.h"
#include "unwind/resolve.h"

// A routine that calls nothing leaves its return address in the link register.
enum gp_step gp_step_leaf(gp_frame_t *frame, gp_stack_memory_t *stack)
{
    (void)stack;
    uintptr_t ra = gp_arch_strip(frame->lr);
    if (!gp_is_return_address(ra))
        return GP_STEP_LOST;
    *frame = (gp_frame_t){.pc = ra, .sp = frame->sp, .fp = frame->fp};
    return GP_STEP_OK;
}

// Not looked into: veneers and PLT entries have too many shapes here.
bool gp_call_may_enter(uintptr_t ra, uintptr_t start)
{
    (void)ra, (void)start;
    return true;
}
