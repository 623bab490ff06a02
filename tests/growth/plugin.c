// SPDX-License-Identifier: MIT
// The plugin that grow loads: a build-id, and something to run.
#include "plugin.h"

__attribute__((noinline)) void run(void)
{
    for (int i = 0; i < 1000; i++)
        __asm__ volatile("");
}
