// SPDX-License-Identifier: MIT
// glibc's own contexts, in turns.
#include "runtime.h"

#include <ucontext.h>

#include "guarded.h"

enum { COUNT_MAX = 16, STACK_MIN = 8192 };

static ucontext_t loop, all[COUNT_MAX];
static bool is_over[COUNT_MAX];
static int current;
static void (*run_body)(int);

size_t runtime_stack_min(void)
{
    return STACK_MIN;
}

static void enter(void)
{
    run_body(current);
    is_over[current] = true; // and on to uc_link
}

static bool make(int id, size_t stack_bytes)
{
    char *low = guarded_stack(stack_bytes);
    if (low == NULL)
        return false;
    getcontext(&all[id]);
    all[id].uc_stack = (stack_t){.ss_sp = low, .ss_size = stack_bytes};
    all[id].uc_link = &loop;
    makecontext(&all[id], enter, 0);
    return true;
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
            swapcontext(&loop, &all[id]);
            left += !is_over[id];
        }
    }
    return true;
}

void runtime_yield(void)
{
    swapcontext(&all[current], &loop);
}
