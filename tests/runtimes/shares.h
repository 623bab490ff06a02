// SPDX-License-Identifier: MIT
// The work of every program of known shares: coroutines alpha, beta, gamma with 60, 30 and 10 % of it, and one that
// only yields. A runtime's program adds only the runtime. Called with `SECONDS ROUNDS`; ends with SHARES_STATUS.
#ifndef SHARES_H
#define SHARES_H

#include "../integration/truth.h"

#ifndef SHARES_STATUS
#define SHARES_STATUS 7
#endif
enum { SHARES_COUNT = 4, SHARES_STACK_BYTES = 65536 };

WORK(alpha)
WORK(beta)
WORK(gamma)

static int shares_rounds;
static uint64_t shares_slice_ns; // of all of them together

static inline int shares_begin(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 3)
        return -1;
    shares_rounds = atoi(argv[2]);
    shares_slice_ns = (uint64_t)(atof(argv[1]) * 1e9 / shares_rounds);
    return 0;
}

static inline __attribute__((always_inline)) void shares_step(int id)
{
    if (id == 0)
        work_alpha(shares_slice_ns * 6 / 10);
    else if (id == 1)
        work_beta(shares_slice_ns * 3 / 10);
    else if (id == 2)
        work_gamma(shares_slice_ns / 10);
}

static inline int shares_end(void)
{
    EXPECT(alpha);
    EXPECT(beta);
    EXPECT(gamma);
    truth_print_total();
    return SHARES_STATUS;
}

#endif
