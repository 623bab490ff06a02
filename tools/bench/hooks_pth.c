// SPDX-License-Identifier: MIT
// Two threads of GNU Pth that yield to one another; a switch goes through Pth's scheduler, by two swapcontext() and two
// system calls each.
#include <pth.h>

#include "worker.h"

static void *other(void *unused)
{
    for (;;)
        pth_yield(NULL);
    return unused;
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    for (unsigned long i = 0; i < amount; i++)
        pth_yield(NULL);
}

int main(int argc, char **argv)
{
    if (!pth_init() || pth_spawn(PTH_ATTR_DEFAULT, other, NULL) == NULL)
        return 1;
    return worker_serve(argc, argv, block);
}
