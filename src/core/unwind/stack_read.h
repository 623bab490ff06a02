// SPDX-License-Identifier: MIT
// The stack that a walk may read.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/arch.h"

typedef struct gp_stack {
    uintptr_t lo, hi; // half-open
} gp_stack_t;

// May the word at `at` be read? Words that are not aligned are not words of a frame.
static inline bool gp_stack_holds(const gp_stack_t *stack, uintptr_t at)
{
    return at >= stack->lo && at <= stack->hi - sizeof(uintptr_t) && at % sizeof(uintptr_t) == 0;
}

GP_UNSANITIZED static inline uintptr_t gp_stack_word(uintptr_t at)
{
    return *(const volatile uintptr_t *)at; // NOLINT(performance-no-int-to-ptr)
}

GP_UNSANITIZED static inline bool gp_stack_read(const gp_stack_t *stack, uintptr_t at, uintptr_t *value)
{
    if (!gp_stack_holds(stack, at))
        return false;
    *value = gp_stack_word(at);
    return true;
}
