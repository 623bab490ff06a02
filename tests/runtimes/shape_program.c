// SPDX-License-Identifier: MIT
// What runs on a shape (shape.h): the usual coroutines.
#include "shape.h"
#include "shares.h"

static int done[SHARES_COUNT];

static void run(int id)
{
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        shape_leave(id);
    }
    done[id] = 1;
    shape_leave(id);
}

static void entry_alpha(void)
{
    run(0);
}
static void entry_beta(void)
{
    run(1);
}
static void entry_gamma(void)
{
    run(2);
}
static void entry_idle(void)
{
    run(3);
}

int main(int argc, char **argv)
{
    static void (*const entries[])(void) = {entry_alpha, entry_beta, entry_gamma, entry_idle};
    if (shares_begin(argc, argv) < 0)
        return 2;
    for (int id = 0; id < SHARES_COUNT; id++)
        shape_make(id, entries[id]);
    for (int left = SHARES_COUNT; left > 0;) {
        left = 0;
        for (int id = 0; id < SHARES_COUNT; id++) {
            if (!done[id])
                shape_enter(id);
            left += !done[id];
        }
    }
    return shares_end();
}
