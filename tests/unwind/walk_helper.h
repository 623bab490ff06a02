// SPDX-License-Identifier: MIT
// The common part of the walk tests: a walk from a signal handler, and stacks to walk.
#ifndef TEST_UNWIND_WALK_HELPER_H
#define TEST_UNWIND_WALK_HELPER_H

#include <stddef.h>
#include <stdint.h>

enum { WALK_MAX = 512 };

typedef struct walk_result {
    uintptr_t frames[WALK_MAX];
    size_t count;
    unsigned flags;
    uintptr_t sp; // of the interrupted code
} walk_result_t;

// Bounds of the calling thread's stack.
void walk_find_stack(uintptr_t *lo, uintptr_t *hi);

// Raise a signal and walk from its context, keeping at most `max` frames.
void walk_here(walk_result_t *result, uintptr_t lo, uintptr_t hi, size_t max);

// The place of `pcs` (n of them, contiguous) in the result, or SIZE_MAX.
size_t walk_find(const walk_result_t *result, const uintptr_t *pcs, size_t n);

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define RETURN_ADDRESS() ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) - 1)

#endif
