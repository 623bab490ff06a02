// SPDX-License-Identifier: MIT
#include <boost/coroutine2/all.hpp>

#include <memory>

#include "shares.h"

typedef boost::coroutines2::coroutine<int> coroutine;

int main(int argc, char **argv)
{
    if (shares_begin(argc, argv) < 0)
        return 2;
    std::unique_ptr<coroutine::pull_type> coroutines[SHARES_COUNT];
    for (int id = 0; id < SHARES_COUNT; id++)
        coroutines[id] = std::make_unique<coroutine::pull_type>([id](coroutine::push_type &yield) {
            for (int i = 0; i < shares_rounds; i++) {
                shares_step(id);
                yield(i);
            }
        });
    for (int left = SHARES_COUNT; left > 0;) {
        left = 0;
        for (auto &each : coroutines)
            left += static_cast<bool>(*each) && static_cast<bool>((*each)());
    }
    return shares_end();
}
