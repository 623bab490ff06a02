// SPDX-License-Identifier: MIT
// Exceptions through a few frames.
#include <cstdint>
#include <stdexcept>
#include <string>

extern "C" {
#include "features.h"
}

static int fall(int depth, int value)
{
    std::string kept = std::to_string(value); // has a destructor to run
    if (depth == 0)
        throw std::runtime_error(kept);
    return fall(depth - 1, value + 1) + static_cast<int>(kept.size());
}

extern "C" uint64_t feature_exceptions(int id, int round)
{
    try {
        return static_cast<uint64_t>(fall(10, id + round));
    } catch (const std::exception &error) {
        return std::stoull(error.what());
    }
}
