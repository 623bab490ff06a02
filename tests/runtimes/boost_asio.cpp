// SPDX-License-Identifier: MIT
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/spawn.hpp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 108000 // without a completion token nothing is started
#include <boost/asio/detached.hpp>
#define HOW_IT_ENDS , boost::asio::detached
#else
#define HOW_IT_ENDS
#endif

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
        } HOW_IT_ENDS);
    loop.run();
    return shares_end();
}
