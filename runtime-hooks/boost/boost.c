// SPDX-License-Identifier: MIT
// Boost.Context, and what is built on it: Coroutine, Coroutine2, Fiber, Asio's spawn.
//
// An fcontext_t is the stack pointer at which a context was left, so it says by itself which stack is switched to. A
// context is never given back: its stack is freed, or made a new context of, which replaces the old record.
//
// Source: Boost 1.74 to 1.92, libs/context/src/asm/{make,jump,ontop}_x86_64_sysv_elf_gas.S.
#include "boost/boost_code_x86_64.h"
#include "coro/announce.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "patch/hooks.h"
#include "unwind/switch_rules.h"

typedef void *make_t(void *top, size_t size, void (*entry)(void));

void gp_boost_jump(const uintptr_t *arguments, const gp_park_t *park)
{
    gp_switch_to_stack(arguments[0], park);
}

// The last switch of a context, Boost.Context's own: fiber_exit() is called on top of the next one with the record.
// Source: boost/context/fiber_fcontext.hpp (fiber_entry, create_fiber1), continuation_fcontext.hpp.
void gp_boost_ontop(const uintptr_t *arguments, const gp_park_t *park)
{
    gp_switch_ontop(arguments[0], arguments[1], park);
}

// Boost.Fiber: a fiber is over here. Its stack is kept, and switched to once more, until its scheduler has the time.
void gp_boost_terminate(const uintptr_t *arguments, const gp_park_t *park)
{
    (void)arguments;
    gp_thread_t *thread = gp_thread_attach();
    uint64_t id = 0;
    bool outside;
    if (thread != NULL)
        gp_coro_ends(gp_thread_coro_at(thread, park->sp, &id, &outside), id);
}

static inline void *boost_made(void *context, void *top, size_t size, void (*entry)(void))
{
    gp_hook_owns(gp_coro_announce((uintptr_t)top - size, (uintptr_t)top, (uintptr_t)entry, NULL));
    return context;
}

PROF_API void *make_fcontext(void *top, size_t size, void (*entry)(void));

void *make_fcontext(void *top, size_t size, void (*entry)(void))
{
    return boost_made(GP_ORIGINAL(make_t, "make_fcontext")(top, size, entry), top, size, entry);
}

// From 1.92 on its own names are C++ ones.
PROF_API void *_ZN5boost7context6detail13make_fcontextEPvmPFvNS1_10transfer_tEE(void *top, size_t size,
                                                                                void (*entry)(void));

void *_ZN5boost7context6detail13make_fcontextEPvmPFvNS1_10transfer_tEE(void *top, size_t size, void (*entry)(void))
{
    static const char name[] = "_ZN5boost7context6detail13make_fcontextEPvmPFvNS1_10transfer_tEE";
    return boost_made(GP_ORIGINAL(make_t, name)(top, size, entry), top, size, entry);
}

// Boost linked into the program: patched (../patch).
make_t gp_patch_make_fcontext;
void *gp_patch_real_make_fcontext;

void *gp_patch_make_fcontext(void *top, size_t size, void (*entry)(void))
{
    return boost_made(GP_PATCHED(make_t, make_fcontext)(top, size, entry), top, size, entry);
}

// The routines have no unwind table. Up to the instruction that loads the stack pointer the frame is the old
// coroutine's, from then on the new one's: both were saved in the same layout.
static const gp_switch_step_t jump_steps[] = {
    {0x00, 1, 0},               // not yet begun
    {0x05, 8, 0},               // saving
    {0x31, 8, 2},               // on the new stack, its frame pointer not yet loaded
    {0x5c, 8, 0}, {0x61, 0, 0}, // popped: the target is in r8, and still below the stack pointer
};
static const gp_switch_step_t ontop_steps[] = {
    {0x00, 1, 0}, {0x08, 8, 0}, {0x34, 8, 2},
    {0x5a, 8, 0}, {0x5f, 1, 0}, // the return address stays for the function it jumps to
};
static const gp_switch_step_t newer_jump_steps[] = {
    {0x00, 1, 0}, {0x05, 9, 0}, {0x31, 9, 2}, {0x5c, 9, 0}, {0x61, 0, 0},
};
static const gp_switch_step_t newer_ontop_steps[] = {
    {0x00, 1, 0}, {0x08, 9, 0}, {0x34, 9, 2}, {0x5a, 9, 0}, {0x5f, 1, 0},
};
static const gp_switch_routine_t newer_jump_routine = GP_SWITCH_ROUTINE(gp_boost_newer_jump_code, newer_jump_steps);
static const gp_switch_routine_t newer_ontop_routine = GP_SWITCH_ROUTINE(gp_boost_newer_ontop_code, newer_ontop_steps);
static const gp_switch_routine_t jump_routine = GP_SWITCH_ROUTINE(gp_boost_jump_code, jump_steps);
static const gp_switch_routine_t ontop_routine = GP_SWITCH_ROUTINE(gp_boost_ontop_code, ontop_steps);

__attribute__((constructor)) static void boost_load(void)
{
    gp_switch_routine_add(&jump_routine);
    gp_switch_routine_add(&ontop_routine);
    gp_switch_routine_add(&newer_jump_routine);
    gp_switch_routine_add(&newer_ontop_routine);
}
