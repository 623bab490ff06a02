// SPDX-License-Identifier: MIT
// The program's ThreadSanitizer, where it has one: a runtime that stands before many calls of libc.
#pragma once

#include <stdbool.h>
#include <stddef.h>

extern void __tsan_init(void) __attribute__((weak));

static inline bool gp_tsan_hints_is_there(void)
{
    return __tsan_init != NULL;
}
