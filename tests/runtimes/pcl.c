// SPDX-License-Identifier: MIT
#include <pcl.h>

#include "shares.h"

static int done[SHARES_COUNT];

static void run(int id)
{
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        co_resume();
    }
    done[id] = 1;
}

static void entry_alpha(void *unused)
{
    (void)unused, run(0);
}
static void entry_beta(void *unused)
{
    (void)unused, run(1);
}
static void entry_gamma(void *unused)
{
    (void)unused, run(2);
}
static void entry_idle(void *unused)
{
    (void)unused, run(3);
}

int main(int argc, char **argv)
{
    static void (*const entries[])(void *) = {entry_alpha, entry_beta, entry_gamma, entry_idle};
    coroutine_t coroutines[SHARES_COUNT];
    if (shares_begin(argc, argv) < 0)
        return 2;
    for (int id = 0; id < SHARES_COUNT; id++)
        coroutines[id] = co_create(entries[id], NULL, NULL, SHARES_STACK_BYTES);
    for (int left = SHARES_COUNT; left > 0;) {
        left = 0;
        for (int id = 0; id < SHARES_COUNT; id++) {
            if (!done[id])
                co_call(coroutines[id]);
            left += !done[id];
        }
    }
    return shares_end();
}
