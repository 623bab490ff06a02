// SPDX-License-Identifier: MIT
// glibc's own contexts.
#include <ucontext.h>

#include "shape.h"

enum { COUNT = 4, BYTES = 65536 };

static ucontext_t loop, all[COUNT];
static char stacks[COUNT][BYTES];

void shape_make(int id, void (*run)(void))
{
    getcontext(&all[id]);
    all[id].uc_stack.ss_sp = stacks[id];
    all[id].uc_stack.ss_size = BYTES;
    makecontext(&all[id], run, 0);
}

void shape_enter(int id)
{
    swapcontext(&loop, &all[id]);
}
void shape_leave(int id)
{
    swapcontext(&all[id], &loop);
}
