// SPDX-License-Identifier: MIT
// The known part of minicoro's structures. Source: minicoro 0.1.3 to 0.2, mco_coro, x86-64's _mco_ctxbuf.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct mco_coro { // its beginning
    void *context;
    int state;
    void (*run)(struct mco_coro *coroutine);
    struct mco_coro *previous;
    void *user_data;
    size_t coro_bytes;
    void *allocator_data;
    void (*deallocate)(void *, size_t, void *);
    void *stack_low;
    size_t stack_bytes;
} mco_coro_t;

typedef struct mco_registers {
    uintptr_t pc, sp;
} mco_registers_t;
