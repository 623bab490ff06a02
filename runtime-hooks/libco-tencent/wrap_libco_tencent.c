// Tencent's libco, coroutines with stacks of their own: coctx_swap(from, to) finds the target's stack pointer in
// to->regs[13]. Its copy-stack mode needs the explicit API.
// Source: libco, coctx.h, coctx.cpp (kRSP).
#include "wrap.h"

enum { REGISTERS = 14 };

typedef struct coctx {
    void *registers[REGISTERS];
    size_t stack_bytes;
    char *stack_low;
} coctx_t;

extern int __real_coctx_make(coctx_t *context, void *(*run)(void *, void *), const void *first, const void *second);
int __wrap_coctx_make(coctx_t *context, void *(*run)(void *, void *), const void *first, const void *second);

int __wrap_coctx_make(coctx_t *context, void *(*run)(void *, void *), const void *first, const void *second)
{
    gp_wrap_announce(context->stack_low, context->stack_bytes, (const void *)(uintptr_t)run, NULL);
    return __real_coctx_make(context, run, first, second);
}
