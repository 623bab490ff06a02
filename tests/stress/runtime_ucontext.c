// SPDX-License-Identifier: MIT
// glibc's own contexts, in turns.
#include <ucontext.h>

#include "turns.h"

static ucontext_t loop, all[TURNS_MAX];

bool turns_make(int id, char *low, size_t stack_bytes)
{
    getcontext(&all[id]);
    all[id].uc_stack = (stack_t){.ss_sp = low, .ss_size = stack_bytes};
    all[id].uc_link = &loop;
    makecontext(&all[id], turns_body, 0);
    return true;
}

void turns_resume(int id)
{
    swapcontext(&loop, &all[id]);
}

void runtime_yield(void)
{
    swapcontext(&all[turns_current()], &loop);
}
