// SPDX-License-Identifier: MIT
// Boost.Context, and what is built on it: Coroutine, Coroutine2, Fiber, Asio's spawn.
//
// An fcontext_t is the stack pointer at which a context was left, so it says by itself which stack is switched to. A
// context is never given back: its stack is freed, or made a new context of, which replaces the old record.
//
// Source: Boost 1.74, libs/context/src/asm/{make,jump,ontop}_x86_64_sysv_elf_gas.S.
#include "interpose/interpose.h"
#include "patch/hooks.h"

typedef void *make_t(void *top, size_t size, void (*entry)(void));

void gp_boost_jump(const uintptr_t *arguments, const gp_park_t *park)
{
    gp_switch_to_stack(arguments[0], park);
}

PROF_API void *make_fcontext(void *top, size_t size, void (*entry)(void));

void *make_fcontext(void *top, size_t size, void (*entry)(void))
{
    void *context = GP_ORIGINAL(make_t, "make_fcontext")(top, size, entry);
    gp_coro_announce((uintptr_t)top - size, (uintptr_t)top, (uintptr_t)entry, NULL);
    return context;
}

// Boost linked into the program: patched (../patch).
make_t gp_patch_make_fcontext;
void *gp_patch_real_make_fcontext;

void *gp_patch_make_fcontext(void *top, size_t size, void (*entry)(void))
{
    void *context = GP_PATCHED(make_t, make_fcontext)(top, size, entry);
    gp_coro_announce((uintptr_t)top - size, (uintptr_t)top, (uintptr_t)entry, NULL);
    return context;
}
