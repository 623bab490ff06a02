// SPDX-License-Identifier: MIT
// Boost.Context's two routines, in turns.
#include "turns.h"

typedef struct transfer {
    void *context, *data;
} transfer_t;

extern transfer_t jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

static void *loop, *all[TURNS_MAX];

static void enter(transfer_t from)
{
    loop = from.context;
    turns_body();
    jump_fcontext(loop, NULL); // and never comes back
}

bool turns_make(int id, char *low, size_t stack_bytes)
{
    all[id] = make_fcontext(low + stack_bytes, stack_bytes, enter);
    return true;
}

void turns_resume(int id)
{
    all[id] = jump_fcontext(all[id], NULL).context;
}

void runtime_yield(void)
{
    loop = jump_fcontext(loop, NULL).context;
}
