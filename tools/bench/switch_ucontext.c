// Two glibc contexts that switch to and fro.
#include <stdlib.h>
#include <ucontext.h>

#include "worker.h"

enum { STACK_BYTES = 64 << 10 };

static ucontext_t home, other;

static void run(void)
{
    for (;;)
        swapcontext(&other, &home);
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    for (unsigned long i = 0; i < amount; i++)
        swapcontext(&home, &other);
}

int main(int argc, char **argv)
{
    getcontext(&other);
    other.uc_stack.ss_size = STACK_BYTES;
    other.uc_stack.ss_sp = malloc(STACK_BYTES);
    if (other.uc_stack.ss_sp == NULL)
        return 1;
    makecontext(&other, run, 0);
    return worker_serve(argc, argv, block);
}
