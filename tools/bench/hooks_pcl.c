// SPDX-License-Identifier: MIT
// A coroutine of PCL that is called again and again.
#include <pcl.h>

#include "worker.h"

static coroutine_t coroutine;

static void run(void *unused)
{
    (void)unused;
    for (;;)
        co_resume();
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    for (unsigned long i = 0; i < amount; i++)
        co_call(coroutine);
}

int main(int argc, char **argv)
{
    co_thread_init();
    coroutine = co_create(run, NULL, NULL, 64 << 10);
    return coroutine != NULL ? worker_serve(argc, argv, block) : 1;
}
