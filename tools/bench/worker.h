// SPDX-License-Identifier: MIT
// The common part of benchmark programs: they do blocks of work when told to, and say what these cost.
//
// Model: the driver keeps one process per variant alive and lets one of them work at a time, in turn, so that what is
// compared ran within milliseconds of each other. A request is a line "AMOUNT WHICH" on standard input; the answer is
// a line on standard output: wall ns, CPU ns of this thread, CPU ns of the process since its start at the block's end,
// signals seen by the preloaded probe so far, then the block's own figures. AMOUNT 0 asks for what was gathered since
// it was last asked for: figures 0 and 1 are then the probe's mean ns inside the handler and its standard error, 2 and
// 3 the program's own. End of file ends the program.
#pragma once

#include <stdint.h>
#include <time.h>

enum { WORKER_FIGURES = 5 };

// Do `amount` of work of kind `which`. `figures`: double[WORKER_FIGURES], zeroed, free to use.
typedef void worker_block_fn(unsigned long amount, unsigned which, double *figures);

// The value of `--name VALUE` on the command line, or `otherwise`.
long worker_option(int argc, char **argv, const char *name, long otherwise);

// Serve requests until end of file. Starts a profile of the process first where `--sample HZ` is given, and ties the
// calling thread to the processor of `--pin CPU`. Returns the program's exit status.
int worker_serve(int argc, char **argv, worker_block_fn *block);

// Start a profile of the whole process. Returns 0, or -1 where the program is built without greenprof or it refuses.
int worker_sampling_start(unsigned frequency_hz);

// The same in exact mode.
int worker_exact_start(void);

static inline uint64_t worker_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
