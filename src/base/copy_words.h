// SPDX-License-Identifier: MIT
// memcpy() without a call: a sanitizer's runtime may stand before that one, and a signal handler have interrupted it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arch.h"

// Copy `bytes`, a multiple of 8, that do not overlap. Signals: safe. Cost: ~15 ns and 0.1 ns a byte.
static inline void gp_copy_words(void *to, const void *from, size_t bytes)
{
    gp_arch_copy_words(to, from, bytes / sizeof(uint64_t));
}
