// SPDX-License-Identifier: MIT
// The program's sigaltstack(), with its own stack as the answer while ours is in place (../signal/host_stack.h).
#include <stddef.h>

#include "base/peek.h"
#include "base/raw_call.h"
#include "collect/shield.h"
#include "greenprof/prof.h"
#include "process/host_calls.h"
#include "signal/host_stack.h"

// The stack that the program believes in. `now`: what is in force.
static stack_t host_stack_call_believed(const gp_thread_t *thread, const stack_t *now)
{
    stack_t stack = thread->host_stack.stack;
    stack.ss_flags |= now->ss_flags & SS_ONSTACK;
    return stack;
}

PROF_API int sigaltstack(const stack_t *stack, stack_t *old)
{
    gp_thread_t *thread = gp_thread_self;
    stack_t wanted, before;
    if (stack != NULL)
        wanted = *stack; // `old` may be where it is
    if (gp_host_stack_change(stack != NULL ? &wanted : NULL, &before) != 0)
        return -1;
    if (old != NULL)
        *old = thread != NULL && thread->host_stack.is_away && before.ss_sp == thread->alternate_stack.ss_sp
                   ? host_stack_call_believed(thread, &before)
                   : before;
    if (stack != NULL && !(wanted.ss_flags & SS_DISABLE) && gp_shield_is_small(wanted.ss_size))
        gp_shield_raise();
    if (thread != NULL && stack != NULL)
        gp_host_stack_is_set(thread, !(wanted.ss_flags & SS_DISABLE) && wanted.ss_sp != thread->alternate_stack.ss_sp);
    return 0;
}

long gp_host_kernel_stack(const long a[5])
{
    stack_t stack, old;
    if ((a[0] != 0 && !gp_peek((uintptr_t)a[0], &stack, sizeof(stack))) ||
        (a[1] != 0 && !gp_peek((uintptr_t)a[1], &old, sizeof(old))))
        return gp_raw_answer(gp_raw_call(SYS_sigaltstack, a[0], a[1], 0, 0, 0));
    return sigaltstack(a[0] != 0 ? &stack : NULL, (stack_t *)a[1]); // NOLINT(performance-no-int-to-ptr)
}
