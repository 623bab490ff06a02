// SPDX-License-Identifier: MIT
// Tencent's libco, coroutines with stacks of their own: coctx_swap(from, to) finds the target's stack pointer in
// to->regs[13]. Its copy-stack mode needs the explicit API.
// Source: libco, coctx.h (C++: coctx_make() has no extern "C"), coctx.cpp (kRSP).
#include "wrap/wrap.h"

enum { REGISTERS = 14 };

typedef struct coctx {
    void *registers[REGISTERS];
    size_t stack_bytes;
    char *stack_low;
} coctx_t;

// coctx_make(coctx_t *, void *(*)(void *, void *), const void *, const void *)
#define MAKE(prefix) prefix##_Z10coctx_makeP7coctx_tPFPvS1_S1_EPKvS5_
extern int MAKE(__real_)(coctx_t *context, void *(*run)(void *, void *), const void *first, const void *second);
int MAKE(__wrap_)(coctx_t *context, void *(*run)(void *, void *), const void *first, const void *second);

int MAKE(__wrap_)(coctx_t *context, void *(*run)(void *, void *), const void *first, const void *second)
{
    gp_wrap_announce(context->stack_low, context->stack_bytes, (const void *)(uintptr_t)run, NULL);
    return MAKE(__real_)(context, run, first, second);
}
