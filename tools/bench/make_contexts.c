// SPDX-License-Identifier: MIT
// makecontext() on a pool of stacks, over and over. Knows nothing of greenprof.
#include <stdlib.h>
#include <ucontext.h>

#include "worker.h"

enum { STACK_BYTES = 64 << 10, STACKS = 1000 };

static ucontext_t contexts[STACKS];

static void run(void)
{
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    for (unsigned long i = 0; i < amount; i++)
        makecontext(&contexts[i % STACKS], run, 0);
}

// Apart from main(), so that no variable lives across getcontext(), which may return twice.
__attribute__((noinline)) static int prepare(ucontext_t *context)
{
    getcontext(context);
    context->uc_stack.ss_size = STACK_BYTES;
    context->uc_stack.ss_sp = malloc(STACK_BYTES);
    return context->uc_stack.ss_sp != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < STACKS; i++)
        if (prepare(&contexts[i]) != 0)
            return 1;
    return worker_serve(argc, argv, block);
}
