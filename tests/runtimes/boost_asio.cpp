// SPDX-License-Identifier: MIT
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/spawn.hpp>

#include "shares.h"

int main(int argc, char **argv)
{
    if (shares_begin(argc, argv) < 0)
        return 2;
    boost::asio::io_context loop(1);
    for (int id = 0; id < SHARES_COUNT; id++)
        boost::asio::spawn(loop, [id, &loop](boost::asio::yield_context yield) {
            for (int i = 0; i < shares_rounds; i++) {
                shares_step(id);
                boost::asio::post(loop, yield);
            }
        });
    loop.run();
    return shares_end();
}
