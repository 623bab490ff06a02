// SPDX-License-Identifier: MIT
// Is a page of a stack there?
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/stack_read.h"

// A system call that reads 8 bytes there, and then refuses its other arguments.
static bool stack_see_is_mapped(uintptr_t page)
{
    int saved_errno = errno;
    bool mapped = syscall(SYS_rt_sigprocmask, -1, page, NULL, sizeof(uint64_t)) != 0 && errno == EINVAL;
    errno = saved_errno;
    return mapped;
}

bool gp_stack_see(gp_stack_memory_t *stack, uintptr_t at)
{
    uintptr_t page = at & ~(uintptr_t)(GP_STACK_PAGE - 1);
    if (page == 0 || !stack_see_is_mapped(page)) // no set at all is nothing to be read
        return false;
    uintptr_t lo = page > stack->lo ? page : stack->lo;
    uintptr_t hi = stack->hi - page > GP_STACK_PAGE ? page + GP_STACK_PAGE : stack->hi;
    bool is_above = lo == stack->seen_hi, is_below = hi == stack->seen_lo;
    if (!is_above) // what was seen elsewhere is asked for again: a walk goes upwards
        stack->seen_lo = lo;
    if (!is_below)
        stack->seen_hi = hi;
    return true;
}
