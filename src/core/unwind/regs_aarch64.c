// SPDX-License-Identifier: MIT
// Registers of a signal's context in DWARF order.
#include "unwind/arch.h"
#include "unwind/unwind.h"

void gp_unwind_regs_from_ucontext(gp_unwind_regs_t *regs, uintptr_t gp[33], const ucontext_t *context)
{
    for (unsigned i = 0; i <= GP_REG_RA; i++)
        gp[i] = context->uc_mcontext.regs[i];
    gp[GP_REG_SP] = context->uc_mcontext.sp;
    gp[GP_REG_PC] = context->uc_mcontext.pc;
    *regs = (gp_unwind_regs_t){
        .pc = gp[GP_REG_PC],
        .sp = gp[GP_REG_SP],
        .fp = gp[GP_REG_FP],
        .lr = gp[GP_REG_RA],
        .gp = gp,
    };
}
