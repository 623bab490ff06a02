// SPDX-License-Identifier: MIT
// The result of a call takes the place of its first argument: so none can be made again from here, nor go on with the
// rest. The number is still in its register.
#include "signal/restart.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "signal/call_number.h"

void gp_restart_call(ucontext_t *context)
{
    (void)context;
}

bool gp_restart_is_call(const ucontext_t *context)
{
    uint64_t number;
    return gp_call_number(context, &number);
}

bool gp_restart_is_suspended(const ucontext_t *context)
{
    uint64_t number;
    return (int64_t)context->uc_mcontext.regs[0] == -EINTR && gp_call_number(context, &number) &&
           number == SYS_rt_sigsuspend;
}

void gp_restart_forget(ucontext_t *context)
{
    (void)context;
}

// No handler returns here (GP_ARCH_RETURNS_BY_US): unwinders know the kernel's way back by its code alone.
void gp_restart_restorer(void)
{
    __builtin_trap();
}
