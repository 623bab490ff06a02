// SPDX-License-Identifier: MIT
// The one place that chooses the processor. Everything else asks gp_arch_* and GP_REG_*.
#pragma once

#if defined(__x86_64__)
#include "unwind/arch_x86_64.h"
#elif defined(__aarch64__)
#include "unwind/arch_aarch64.h"
#else
#error "greenprof walks stacks on x86-64 and aarch64 only"
#endif

// Stack words are read as the program left them: poisoned redzones and races are not the walker's bugs.
#define GP_UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

static inline bool gp_addr_plausible(uintptr_t pc)
{
    return pc >= 4096 && pc >> GP_ADDR_BITS == 0;
}
