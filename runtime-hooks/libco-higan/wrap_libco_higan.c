// SPDX-License-Identifier: MIT
// higan's (byuu's) libco: a cothread_t is its memory, and begins with the stack pointer.
// Source: libco v18 and later, amd64.c.
#include "wrap/wrap.h"

extern void *__real_co_create(unsigned bytes, void (*run)(void));
extern void *__real_co_derive(void *memory, unsigned bytes, void (*run)(void));
void *__wrap_co_create(unsigned bytes, void (*run)(void));
void *__wrap_co_derive(void *memory, unsigned bytes, void (*run)(void));

static void *wrap_libco_higan_announced(void *thread, unsigned bytes, void (*run)(void))
{
    if (thread != NULL)
        gp_wrap_announce(thread, bytes, (const void *)(uintptr_t)run, NULL);
    return thread;
}

void *__wrap_co_create(unsigned bytes, void (*run)(void))
{
    return wrap_libco_higan_announced(__real_co_create(bytes, run), bytes, run);
}

void *__wrap_co_derive(void *memory, unsigned bytes, void (*run)(void))
{
    return wrap_libco_higan_announced(__real_co_derive(memory, bytes, run), bytes, run);
}
