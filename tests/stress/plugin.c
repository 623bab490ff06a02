// SPDX-License-Identifier: MIT
// Comes and goes; built several times.
#include <stdint.h>

uint64_t plugin_work(uint64_t seed);

uint64_t plugin_work(uint64_t seed)
{
    uint64_t value = seed + PLUGIN_NUMBER;
    for (int i = 0; i < 20000; i++)
        value = value * 6364136223846793005u + PLUGIN_NUMBER;
    return value;
}
