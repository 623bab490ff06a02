// SPDX-License-Identifier: MIT
// Calls of instrumented functions: a tree of them, and one in a loop. Without greenprof the hooks are glibc's, which
// are empty.
#include "worker.h"

#define PLAIN __attribute__((no_instrument_function))

enum { TREE = 15, TREE_CALLS = 1973, LOOP_CALLS = 2000 }; // calls of one unit of work

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned tree(unsigned n)
{
    return n < 2 ? n : tree(n - 1) + tree(n - 2);
}

__attribute__((noinline)) static void leaf(void)
{
    sink++;
}

PLAIN static void block(unsigned long amount, unsigned which, double *figures)
{
    for (unsigned long i = 0; i < amount; i++) {
        if (which == 0)
            sink += tree(TREE);
        else
            for (int j = 0; j < LOOP_CALLS; j++)
                leaf();
    }
    figures[0] = which == 0 ? TREE_CALLS : LOOP_CALLS;
}

PLAIN int main(int argc, char **argv)
{
    if (worker_option(argc, argv, "--exact", 0) != 0 && worker_exact_start() != 0)
        return 1;
    return worker_serve(argc, argv, block);
}
