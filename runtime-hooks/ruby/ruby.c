// SPDX-License-Identifier: MIT
// Ruby's Fibers (3.0 and later, shared libruby): coroutine_transfer(from, to) is called through the PLT, and a context
// begins with the stack pointer at which it was left.
//
// Stacks come from a pool and are used again; a context on which nothing has run yet shows by what Ruby has put there:
// six registers of zero, the entry function, and a return address of zero above it.
// Source: Ruby 3.1, coroutine/amd64/Context.h (coroutine_initialize), Context.S.
#include <stdbool.h>
#include <stddef.h>

#include "coro/threads.h"
#include "interpose/interpose.h"
#include "ruby_names.h"

enum { REGISTERS = 6, ENTRY = REGISTERS, BOTTOM, WORDS };

typedef struct context { // its beginning
    const uintptr_t *stack_pointer;
} context_t;

static bool is_fresh(const uintptr_t *sp)
{
    for (int i = 0; i < REGISTERS; i++)
        if (sp[i] != 0)
            return false;
    return sp[ENTRY] != 0 && sp[BOTTOM] == 0;
}

// All stacks of a process have one size. The first is measured: its guard page is the end of its mapping.
static void announce(const context_t *context)
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

void gp_ruby_transfer(const uintptr_t *arguments, const gp_park_t *park)
{
    const context_t *to = (const context_t *)arguments[1];
    bool is_over = gp_ruby_is_terminated((const void *)arguments[0]);
    gp_thread_t *thread = is_over ? gp_thread_attach() : NULL;
    uint64_t id = 0;
    bool outside;
    if (to->stack_pointer != NULL && is_fresh(to->stack_pointer))
        announce(to);
    prof_coro_t *over = NULL;
    if (thread != NULL)
        over = gp_thread_coro_at(thread, park->sp, &id, &outside);
    gp_switch_to_stack((uintptr_t)to->stack_pointer, park);
    gp_coro_ends(over, id);
}
