// SPDX-License-Identifier: MIT
#include <signal.h>
#include <sys/syscall.h>

#include "base/peek.h"
#include "signal/call_number.h"
#include "signal/held_back.h"

enum { SET_BYTES = 8 };

static bool held_back_has(uintptr_t set, int number, bool otherwise)
{
    uint64_t bits;
    return set != 0 && gp_peek(set, &bits, sizeof(bits)) ? bits >> (number - 1) & 1 : otherwise;
}

bool gp_held_back_by_mask(const ucontext_t *context, int number, bool is_late)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    greg_t how = registers[REG_RDI];
    uintptr_t set = (uintptr_t)registers[REG_RSI], old = (uintptr_t)registers[REG_RDX];
    uint64_t call;
    if (registers[REG_RCX] != registers[REG_RIP] || registers[REG_RAX] != 0 || registers[REG_R10] != SET_BYTES ||
        (how != SIG_UNBLOCK && how != SIG_SETMASK) || set == 0)
        return false;
    if (!held_back_has(old, number, is_late))
        return false;
    bool lets_through = old == set || held_back_has(set, number, how == SIG_SETMASK) == (how == SIG_UNBLOCK);
    return lets_through && gp_call_number(context, &call) && call == SYS_rt_sigprocmask;
}
