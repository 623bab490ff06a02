// SPDX-License-Identifier: MIT
#include <sys/syscall.h>

#include "base/peek.h"
#include "signal/call_number.h"
#include "signal/held_back.h"

enum { SET_BYTES = 8 };

// The result is where `how` was, but the signal was blocked before, and has come: so it was let through.
bool gp_held_back_by_mask(const ucontext_t *context, int number, bool is_late)
{
    const unsigned long long *registers = context->uc_mcontext.regs;
    uint64_t call, before;
    uintptr_t old = (uintptr_t)registers[2];
    if (!gp_call_number(context, &call) || call != SYS_rt_sigprocmask || registers[0] != 0 || registers[1] == 0 ||
        registers[3] != SET_BYTES)
        return false;
    return old != 0 && gp_peek(old, &before, sizeof(before)) ? before >> (number - 1) & 1 : is_late;
}
