// SPDX-License-Identifier: MIT
// Ruby's Fibers (3.0 and later, shared libruby): coroutine_transfer(from, to) is called through the PLT, and a context
// begins with the stack pointer at which it was left.
//
// Stacks come from a pool and are used again; a context on which nothing has run yet shows by what Ruby has put there:
// six registers of zero, the entry function, and a return address of zero above it.
// Where greenprof came into a program that runs already, a context has run before anything was seen of it: its stack is
// measured when it is left or entered for the first time, as each has a mapping of its own between guard pages.
// Source: Ruby 3.1, coroutine/amd64/Context.h (coroutine_initialize), Context.S.
#include <stdbool.h>
#include <stddef.h>

#include "coro/announce.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "ruby_frames.h"
#include "ruby_names.h"
#include "signal/region.h"

enum { REGISTERS = 6, ENTRY = REGISTERS, BOTTOM, WORDS };

typedef struct context { // its beginning
    const uintptr_t *stack_pointer;
} context_t;

static bool ruby_is_fresh(const uintptr_t *sp)
{
    for (int i = 0; i < REGISTERS; i++)
        if (sp[i] != 0)
            return false;
    return sp[ENTRY] != 0 && sp[BOTTOM] == 0;
}

// All stacks of a process have one size. The first is measured: its guard page is the end of its mapping.
static void ruby_announce(const context_t *context)
{
    const uintptr_t *sp = context->stack_pointer;
    char name[48] = "fiber";
    static _Atomic uintptr_t stack_bytes;
    uintptr_t hi = (uintptr_t)(sp + WORDS), bytes = stack_bytes;
    if (bytes == 0) {
        uintptr_t lo, end;
        if (!gp_hook_mapping(hi - 1, &lo, &end))
            return;
        stack_bytes = bytes = hi - lo;
    }
    gp_ruby_name(context, name, sizeof(name));
    gp_hook_owns(gp_coro_announce(hi - bytes, hi, sp[ENTRY], name));
}

// Is the stack an unannounced fiber's? A fiber that a sample has found is: its switches until now went unseen.
static bool ruby_is_early(const gp_thread_t *thread, uintptr_t sp)
{
    uint64_t id;
    if (sp == 0 || gp_region_holds(thread->root, thread->root_id, sp))
        return false;
    const prof_coro_t *coro = gp_region_find(sp, &id);
    return coro == NULL || coro->kind == GP_CORO_FOUND;
}

static void ruby_announce_early(const gp_thread_t *thread, const context_t *context, uintptr_t sp)
{
    char name[48] = "fiber";
    uintptr_t lo, hi;
    if (!ruby_is_early(thread, sp) || !gp_hook_mapping(sp, &lo, &hi))
        return;
    gp_ruby_name(context, name, sizeof(name));
    gp_hook_owns(gp_coro_announce(lo, hi, 0, name));
}

static void ruby_announce_both_early(const uintptr_t *arguments, const gp_park_t *park)
{
    const context_t *from = (const context_t *)arguments[0], *to = (const context_t *)arguments[1];
    const gp_thread_t *thread = gp_thread_attach();
    if (thread == NULL)
        return;
    ruby_announce_early(thread, from, park->sp);
    ruby_announce_early(thread, to, (uintptr_t)to->stack_pointer);
}

void gp_ruby_transfer(const uintptr_t *arguments, const gp_park_t *park)
{
    const context_t *to = (const context_t *)arguments[1];
    bool is_over = gp_ruby_is_terminated((const void *)arguments[0]);
    gp_thread_t *thread = is_over ? gp_thread_attach() : NULL;
    uint64_t id = 0;
    bool outside;
    if (to->stack_pointer != NULL && ruby_is_fresh(to->stack_pointer))
        ruby_announce(to);
    if (__builtin_expect(atomic_load_explicit(&gp_switch_meets_early, memory_order_relaxed), 0))
        ruby_announce_both_early(arguments, park);
    prof_coro_t *over = NULL;
    if (thread != NULL)
        over = gp_thread_coro_at(thread, park->sp, &id, &outside);
    gp_ruby_note_switch(arguments[0], arguments[1]);
    gp_switch_to_stack((uintptr_t)to->stack_pointer, park);
    gp_coro_ends(over, id);
}
