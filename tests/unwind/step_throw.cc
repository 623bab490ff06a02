// SPDX-License-Identifier: MIT
// C++ exceptions in flight.
#include <stdexcept>
#include <string>

#include "step_work.h"

namespace
{
volatile int sink;

struct guard {
    ~guard()
    {
        sink = sink + 1;
    }
};

__attribute__((noinline)) void thrower(int n)
{
    guard g;
    if (n == 0)
        throw std::runtime_error(std::string(30, 'x'));
    thrower(n - 1);
    sink = sink + n;
}
} // namespace

extern "C" void step_throw(void)
{
    try {
        thrower(3);
    } catch (const std::exception &e) {
        sink = e.what()[0];
    }
}
