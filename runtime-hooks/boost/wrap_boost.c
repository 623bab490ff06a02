// SPDX-License-Identifier: MIT
// Boost.Context from libboost_context.a, and folly's fibers, which are built on it.
#include "wrap/wrap.h"

extern void *__real_make_fcontext(void *top, size_t size, void (*entry)(void));
void *__wrap_make_fcontext(void *top, size_t size, void (*entry)(void));

void *__wrap_make_fcontext(void *top, size_t size, void (*entry)(void))
{
    void *context = __real_make_fcontext(top, size, entry);
    gp_wrap_announce((char *)top - size, size, (const void *)(uintptr_t)entry, NULL);
    return context;
}
