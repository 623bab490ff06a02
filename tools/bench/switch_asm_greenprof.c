// The same switch bare (0) and announced to greenprof (1), in one program linked with it.
#include "swap.h"
#include "worker.h"

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)figures;
    (which == 0 ? bench_switch_bare : bench_switch_announced)(amount);
}

int main(int argc, char **argv)
{
    return worker_serve(argc, argv, block);
}
