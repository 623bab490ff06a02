// Registers of a signal's context in DWARF order.
#define _GNU_SOURCE
#include "unwind/arch.h"
#include "unwind/unwind.h"

void gp_unwind_regs_from_ucontext(gp_unwind_regs_t *regs, uintptr_t gp[33],
                                  const ucontext_t *context)
{
    static const uint8_t order[GP_REG_COUNT] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
    };
    for (unsigned i = 0; i < GP_REG_COUNT; i++) {
        gp[i] = (uintptr_t)context->uc_mcontext.gregs[order[i]];
    }
    *regs = (gp_unwind_regs_t){
        .pc = gp[GP_REG_PC],
        .sp = gp[GP_REG_SP],
        .fp = gp[GP_REG_FP],
        .gp = gp,
    };
}
