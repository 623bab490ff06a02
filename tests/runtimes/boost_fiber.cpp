// SPDX-License-Identifier: MIT
#include <boost/fiber/all.hpp>

#include <vector>

#include "shares.h"

static void run_worker(int id)
{
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        boost::this_fiber::yield();
    }
}

int main(int argc, char **argv)
{
    if (shares_begin(argc, argv) < 0)
        return 2;
    std::vector<boost::fibers::fiber> fibers;
    for (int id = 0; id < SHARES_COUNT; id++)
        fibers.emplace_back(run_worker, id);
    for (auto &fiber : fibers)
        fiber.join();
    return shares_end();
}
