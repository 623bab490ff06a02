// SPDX-License-Identifier: MIT
// A system call of the program's, made for it: not by syscall(), which is ours (host_syscall_x86_64.S).
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

// Returns a negative errno value where it fails. Signals: safe, as far as the call is.
static inline long gp_raw_call(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#else
    long result = syscall(number, a, b, c, d, e);
    return result < 0 ? -errno : result;
#endif
}

// The same as syscall() has it.
static inline long gp_raw_answer(long result)
{
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}
