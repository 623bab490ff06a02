// SPDX-License-Identifier: MIT
// A profile of the wall clock on an ordinary thread that sleeps: NAP says for how long; the profile goes to a file.
#include <stdio.h>
#include <unistd.h>

#include "greenprof/prof.h"
#include "truth.h"

TRUTH_OUT_OF_LINE static void nap(void)
{
    for (int i = 0; i < 8; i++)
        usleep(100000);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.clock = PROF_CLOCK_WALL;
    prof_t *profile = argc > 1 ? prof_start(&options) : NULL;
    if (profile == NULL)
        return 1;
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    nap();
    printf("NAP %.6f\n", (double)(truth_clock_ns(CLOCK_MONOTONIC) - start) / 1e9);
    int result = prof_stop(profile);
    if (result == 0)
        result = prof_dump(profile, "folded", argv[1]);
    prof_free(profile);
    return result != 0;
}
