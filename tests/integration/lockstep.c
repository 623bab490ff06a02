// SPDX-License-Identifier: MIT
// Two functions take turns at exact multiples of a slice of CPU time: work in lock-step with a sampling timer.
//   lockstep SECONDS SLICE_US
#include "truth.h"

static uint64_t even_ns, odd_ns;

static TRUTH_OUT_OF_LINE void work_even(uint64_t start, uint64_t end)
{
    truth_burn_until(start, end, &even_ns);
    __asm__ volatile("");
}

static TRUTH_OUT_OF_LINE void work_odd(uint64_t start, uint64_t end)
{
    truth_burn_until(start, end, &odd_ns);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 3)
        return 2;
    uint64_t slice = (uint64_t)atol(argv[2]) * 1000, begin = truth_cpu_ns(), now = begin;
    uint64_t slices = (uint64_t)(atof(argv[1]) * 1e9) / slice;
    for (uint64_t i = 1; i <= slices; i++) {
        (i % 2 ? work_odd : work_even)(now, begin + i * slice);
        now = truth_cpu_ns();
    }
    EXPECT(even);
    EXPECT(odd);
    truth_print_total();
    return 0;
}
