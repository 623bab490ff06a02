// SPDX-License-Identifier: MIT
// A test's look at each syscall(2) before it is made, where it is linked with --wrap=syscall.
#ifndef WRAPPED_SYSCALL_H
#define WRAPPED_SYSCALL_H

#include <stdarg.h>

// The test's own.
static void before_syscall(long number, const long arguments[6]);

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
// Fewer arguments may have been given than are passed on.
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    before_syscall(number, a);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
