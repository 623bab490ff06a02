// SPDX-License-Identifier: MIT
// memcpy() without a call: a sanitizer's runtime may stand before that one, and a signal handler have interrupted it.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Copy `bytes`, a multiple of 8, that do not overlap. Signals: safe. Cost: ~15 ns and 0.1 ns a byte.
static inline void gp_copy_words(void *to, const void *from, size_t bytes)
{
#if defined(__x86_64__)
    size_t words = bytes / sizeof(uint64_t);
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
#else
    volatile uint64_t *out = to; // or the compiler makes a call of it
    const uint64_t *in = from;
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        out[i] = in[i];
#endif
}
