// SPDX-License-Identifier: MIT
// A plugin that spins in a function of its own, named on the compiler's command line.
#include "reloaded.h"

__attribute__((noinline)) static void PLUGIN_WORK(double seconds)
{
    double end = cpu_seconds() + seconds;
    volatile unsigned sink = 0;
    while (cpu_seconds() < end)
        for (unsigned i = 0; i < 20000; i++)
            sink = sink + i;
}

__attribute__((visibility("default"))) void plugin_run(double seconds)
{
    PLUGIN_WORK(seconds);
    __asm__ volatile(""); // no tail call
}
