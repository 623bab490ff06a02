// SPDX-License-Identifier: MIT
// A fiber that sleeps in between: its dispatcher, a coroutine of Boost's own, waits in the C library.
#include <boost/fiber/all.hpp>

#include <chrono>

#include "shares.h"

static void run_worker(int id)
{
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        boost::this_fiber::sleep_for(std::chrono::milliseconds(10));
    }
}

int main(int argc, char **argv)
{
    if (shares_begin(argc, argv) < 0)
        return 2;
    boost::fibers::fiber(run_worker, 0).join();
    return shares_end();
}
