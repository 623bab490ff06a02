// SPDX-License-Identifier: MIT
// Boost.Context's two routines, in turns.
#include "runtime.h"

#include "guarded.h"

enum { COUNT_MAX = 16, STACK_MIN = 8192 };

typedef struct transfer {
    void *context, *data;
} transfer_t;

extern transfer_t jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

static void *loop, *all[COUNT_MAX];
static bool is_over[COUNT_MAX];
static int current;
static void (*run_body)(int);

size_t runtime_stack_min(void)
{
    return STACK_MIN;
}

static void enter(transfer_t from)
{
    loop = from.context;
    run_body(current);
    is_over[current] = true;
    jump_fcontext(loop, NULL); // and never comes back
}

static bool make(int id, size_t stack_bytes)
{
    char *low = guarded_stack(stack_bytes);
    all[id] = low != NULL ? make_fcontext(low + stack_bytes, stack_bytes, enter) : NULL;
    return low != NULL;
}

bool runtime_run(int count, size_t stack_bytes, void (*body)(int))
{
    run_body = body;
    for (int id = 0; id < count; id++)
        if (!make(id, stack_bytes))
            return false;
    for (int left = count; left > 0;) {
        left = 0;
        for (int id = 0; id < count; id++) {
            if (is_over[id])
                continue;
            current = id;
            all[id] = jump_fcontext(all[id], NULL).context;
            left += !is_over[id];
        }
    }
    return true;
}

void runtime_yield(void)
{
    loop = jump_fcontext(loop, NULL).context;
}
