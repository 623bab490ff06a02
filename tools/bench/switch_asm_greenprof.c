// SPDX-License-Identifier: MIT
// The same switch bare (0) and announced to greenprof (1), in one program linked with it; with work between switches
// (2, 3).
#include "swap.h"
#include "worker.h"

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)figures;
    void (*const loops[])(unsigned long) = {bench_switch_bare, bench_switch_announced, bench_work_bare,
                                            bench_work_announced};
    loops[which % 4](amount);
}

int main(int argc, char **argv)
{
    return worker_serve(argc, argv, block);
}
