// SPDX-License-Identifier: MIT
// A system call of the program's, made for it: not by syscall(), which is ours (core/process/host_syscall_*.S).
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arch.h"

// Returns a negative errno value where it fails. Signals: safe, as far as the call is.
static inline long gp_raw_call(long number, long a, long b, long c, long d, long e)
{
    return gp_arch_call(number, a, b, c, d, e);
}

// The same as syscall() has it.
static inline long gp_raw_answer(long result)
{
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}
