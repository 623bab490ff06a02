// SPDX-License-Identifier: MIT
// Registers of a signal's context in DWARF order.
#define _GNU_SOURCE
#include <string.h>

#include "unwind/arch.h"
#include "unwind/unwind.h"

void gp_unwind_regs_from_ucontext(gp_unwind_regs_t *regs, uintptr_t gp[33], const ucontext_t *context)
{
    const greg_t *r = context->uc_mcontext.gregs;
    const greg_t ordered[GP_REG_COUNT] = {
        r[REG_RAX], r[REG_RDX], r[REG_RCX], r[REG_RBX], r[REG_RSI], r[REG_RDI], r[REG_RBP], r[REG_RSP], r[REG_R8],
        r[REG_R9],  r[REG_R10], r[REG_R11], r[REG_R12], r[REG_R13], r[REG_R14], r[REG_R15], r[REG_RIP],
    };
    memcpy(gp, ordered, sizeof ordered);
    *regs = (gp_unwind_regs_t){
        .pc = gp[GP_REG_PC],
        .sp = gp[GP_REG_SP],
        .fp = gp[GP_REG_FP],
        .gp = gp,
    };
}
