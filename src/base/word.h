// SPDX-License-Identifier: MIT
// Words that are compared, and added to, in one instruction where the processor has one: compilers make two or three
// of them where the word is atomic.
//
// Order: relaxed. Threads: an addition is whole for a signal handler of the same thread, not for other threads.
// Signals: safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arch.h"

static inline bool gp_word_is(const _Atomic uint64_t *word, uint64_t value)
{
#ifdef GP_ARCH_IS
    return GP_ARCH_IS(word, value);
#else
    return atomic_load_explicit(word, memory_order_relaxed) == value;
#endif
}

// The same for a word that is a pointer: gp_word_is_pointer(const _Atomic(T *) *word, T *value)
#ifdef GP_ARCH_IS
#define gp_word_is_pointer(word, value) GP_ARCH_IS(word, value)
#else
#define gp_word_is_pointer(word, value) (atomic_load_explicit(word, memory_order_relaxed) == (value))
#endif

static inline bool gp_word_is_below(const _Atomic uint64_t *word, uint64_t value)
{
#ifdef GP_ARCH_IS
    return GP_ARCH_IS_BELOW(word, value);
#else
    return atomic_load_explicit(word, memory_order_relaxed) < value;
#endif
}

static inline bool gp_word32_is(const _Atomic uint32_t *word, uint32_t value)
{
#ifdef GP_ARCH_IS
    return GP_ARCH_IS_32(word, value);
#else
    return atomic_load_explicit(word, memory_order_relaxed) == value;
#endif
}

static inline bool gp_word8_is(const _Atomic uint8_t *word, uint8_t value)
{
#ifdef GP_ARCH_IS
    return GP_ARCH_IS_8(word, value);
#else
    return atomic_load_explicit(word, memory_order_relaxed) == value;
#endif
}

static inline bool gp_word_is_true(const _Atomic bool *word)
{
#ifdef GP_ARCH_IS
    return GP_ARCH_IS_TRUE(word);
#else
    return atomic_load_explicit(word, memory_order_relaxed);
#endif
}

// Add to a word that this thread alone writes to.
static inline void gp_word_add(_Atomic uint64_t *word, uint64_t amount)
{
#ifdef GP_ARCH_IS
    GP_ARCH_ADD(word, amount);
#else
    atomic_fetch_add_explicit(word, amount, memory_order_relaxed);
#endif
}
