// SPDX-License-Identifier: MIT
#include "features.h"

uint64_t features_work(uint64_t seed, int thousands)
{
    uint64_t value = seed * 2 + 1;
    for (int i = 0; i < thousands * 1000; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    return value;
}
