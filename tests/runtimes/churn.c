// SPDX-License-Identifier: MIT
// A server's worth of short coroutines: each is made on a stack of a pool, runs once, and is forgotten.
//   churn COROUTINES STACKS
#include "shape.h"
#include "shares.h"

static unsigned long ran;

static void entry(void)
{
    ran++;
    truth_spin(); // and ends: to the loop
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 3)
        return 2;
    long count = atol(argv[1]), stacks = atol(argv[2]);
    char *memory = malloc((size_t)stacks * SHARES_STACK_BYTES);
    for (long i = 0; i < count; i++) {
        shape_make_on(0, memory + i % stacks * SHARES_STACK_BYTES, SHARES_STACK_BYTES, entry);
        shape_enter(0);
    }
    // Not getrusage(): that begins with what the process was before exec.
    printf("RAN %lu\nPEAK %ld\n", ran, truth_from_proc("/proc/self/status", "VmHWM:"));
    truth_print_total();
    return SHARES_STATUS;
}
