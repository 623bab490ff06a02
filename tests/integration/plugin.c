// SPDX-License-Identifier: MIT
// A plugin with work in it: PLUGIN_WORK is the name of its function. Its book is its caller's.
#include "truth.h"

#define VISIBLE __attribute__((visibility("default")))

VISIBLE TRUTH_OUT_OF_LINE void PLUGIN_WORK(uint64_t ns, uint64_t *book)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + ns, book);
    __asm__ volatile("");
}

VISIBLE void (*plugin_work(void))(uint64_t, uint64_t *)
{
    return PLUGIN_WORK;
}
