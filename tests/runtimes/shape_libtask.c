// SPDX-License-Identifier: MIT
// libtask's task.c, which calls its context.c: an object of its own, as in the archive.
#include <stdarg.h>
#include <stdlib.h>

#include "shape.h"
#include "shape_runtime.h"

typedef struct task {
    void (*start)(void *);
    void *argument;
} task;

static task tasks[16];
static libtask_ucontext contexts[16];
static int count, running = -1;

libtask_ucontext *task_context(int id)
{
    running = id;
    return &contexts[id];
}

static void taskstart(unsigned low, unsigned high)
{
    (void)low, (void)high;
    tasks[running].start(tasks[running].argument);
}

int taskcreate(void (*start)(void *), void *argument, unsigned stack_size)
{
    int id = count++;
    tasks[id] = (task){start, argument};
    contexts[id].uc_stack.ss_sp = malloc(stack_size);
    contexts[id].uc_stack.ss_size = stack_size;
    libtask_makecontext(&contexts[id], (void (*)(void))taskstart, 2, 1u, 2u);
    return id;
}
