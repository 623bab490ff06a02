// SPDX-License-Identifier: MIT
// The bare assembly switch, in a program that knows nothing of greenprof.
#include "swap.h"
#include "worker.h"

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    bench_switch_bare(amount);
}

int main(int argc, char **argv)
{
    return worker_serve(argc, argv, block);
}
