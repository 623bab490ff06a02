// SPDX-License-Identifier: MIT
// brpc's bthreads: Boost's older fcontext under names of their own.
// Source: brpc, src/bthread/context.h.
#include "wrap/wrap.h"

extern void *__real_bthread_make_fcontext(void *top, size_t size, void (*entry)(intptr_t));
void *__wrap_bthread_make_fcontext(void *top, size_t size, void (*entry)(intptr_t));

void *__wrap_bthread_make_fcontext(void *top, size_t size, void (*entry)(intptr_t))
{
    void *context = __real_bthread_make_fcontext(top, size, entry);
    gp_wrap_announce((char *)top - size, size, (const void *)(uintptr_t)entry, NULL);
    return context;
}
