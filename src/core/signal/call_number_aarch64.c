// SPDX-License-Identifier: MIT
#include "signal/call_number.h"

#include <string.h>

enum { X8 = 8, PAGE = 4096 };

// The register of the number is left as it was.
bool gp_call_number(const ucontext_t *context, uint64_t *number)
{
    static const uint32_t svc = 0xd4000001u;
    uint32_t before;
    uintptr_t pc = (uintptr_t)context->uc_mcontext.pc;
    if (pc % PAGE < sizeof(before))
        return false;
    memcpy(&before, (const void *)(pc - sizeof(before)), sizeof(before));
    *number = context->uc_mcontext.regs[X8];
    return before == svc;
}
