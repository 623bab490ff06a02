// SPDX-License-Identifier: MIT
// libtask, which has a swapcontext() and a makecontext() of its own, with FreeBSD's layout of a ucontext: the stack
// pointer is at 312, uc_stack at 936. Source: libtask, amd64-ucontext.h, context.c, task.c (taskalloc, taskstart).
#include "wrap/wrap.h"

enum { UC_STACK = 936 };

typedef void start_t(void *);

typedef struct task_stack { // stack_t
    void *low;
    int flags;
    size_t bytes;
} task_stack_t;

static __thread struct making { // the task that is being made
    start_t *start;             // will run; NULL = not known
    prof_park_t creator;
} making;

extern int __real_taskcreate(start_t *start, void *argument, unsigned stack_bytes);
extern void __real_makecontext(void *context, void (*entry)(void), int count, ...);
int __wrap_taskcreate(start_t *start, void *argument, unsigned stack_bytes);
void __wrap_makecontext(void *context, void (*entry)(void), int count, unsigned first, unsigned second);

int __wrap_taskcreate(start_t *start, void *argument, unsigned stack_bytes)
{
    making = (struct making){start, gp_wrap_caller()};
    int id = __real_taskcreate(start, argument, stack_bytes);
    making.start = NULL;
    return id;
}

// libtask's entry function takes a pointer in two halves.
void __wrap_makecontext(void *context, void (*entry)(void), int count, unsigned first, unsigned second)
{
    const task_stack_t *stack = (const task_stack_t *)(const void *)((const char *)context + UC_STACK);
    __real_makecontext(context, entry, count, first, second);
    if (making.start != NULL)
        gp_wrap_announce_for(stack->low, stack->bytes, (const void *)(uintptr_t)making.start, NULL, making.creator);
    else
        gp_wrap_announce(stack->low, stack->bytes, (const void *)(uintptr_t)entry, NULL);
}
