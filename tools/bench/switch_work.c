// SPDX-License-Identifier: MIT
// Switches and little else, as of a proxy: 16 coroutines (ucontext), each of which works for 15 microseconds and
// yields to the loop.
#include <stdlib.h>
#include <ucontext.h>

#include "worker.h"

enum { COROUTINES = 16, STACK_BYTES = 64 << 10, STEPS = 12000 };

static ucontext_t loop, contexts[COROUTINES];
static volatile unsigned long sink;

static void work(void)
{
    unsigned long sum = sink;
    for (int i = 0; i < STEPS; i++)
        sum = sum * 6364136223846793005ul + 1;
    sink = sum;
}

static void run(int number)
{
    for (;;) {
        work();
        swapcontext(&contexts[number], &loop);
    }
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    for (unsigned long i = 0; i < amount; i++)
        swapcontext(&loop, &contexts[i % COROUTINES]);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = malloc(STACK_BYTES);
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        makecontext(&contexts[i], (void (*)(void))run, 1, i);
    }
    return worker_serve(argc, argv, block);
}
