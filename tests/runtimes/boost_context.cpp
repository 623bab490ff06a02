// SPDX-License-Identifier: MIT
// boost::context::fiber, and the callcc() interface below Coroutine2.
#include <boost/context/fiber.hpp>

#include "shares.h"

namespace context = boost::context;

static context::fiber run(int id, context::fiber caller)
{
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        caller = std::move(caller).resume();
    }
    return caller;
}

int main(int argc, char **argv)
{
    if (shares_begin(argc, argv) < 0)
        return 2;
    context::fiber fibers[SHARES_COUNT];
    for (int id = 0; id < SHARES_COUNT; id++)
        fibers[id] = context::fiber([id](context::fiber caller) { return run(id, std::move(caller)); });
    for (int left = SHARES_COUNT; left > 0;) {
        left = 0;
        for (auto &fiber : fibers) {
            if (fiber)
                fiber = std::move(fiber).resume();
            left += static_cast<bool>(fiber);
        }
    }
    return shares_end();
}
