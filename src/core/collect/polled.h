// SPDX-License-Identifier: MIT
// Coroutines that a runtime was found to run (signal/poll.h): their records, names and accounts.
//
// Model: an object of the runtime is one coroutine (GP_CORO_POLLED) as long as its identity stays; another identity is
// another coroutine. CPU time charged to the thread by a handler moves to the running coroutine: the CPU time of
// these coroutines is the sum of their samples. Their names are read, with the kernel's help, while the objects are in
// use: before and after, the identity must be the sample's. Their end is not reported: what has not been sampled for
// long goes when there are very many.
//
// Threads: the collector, drain lock held. Signals: not safe.
#pragma once

#include "signal/sample.h"
#include "signal/thread.h"

// The owner of a sample with GP_SAMPLE_POLLED; of one with GP_SAMPLE_MISFIT, the owner of the stack it is on. The
// accounts of both follow. Returns the coroutine and its id, or NULL: it is not known, or memory is short. Cost: ~50
// ns; ~2 us where the name is read, at most every 100 ms.
prof_coro_t *gp_polled_owner(gp_thread_t *thread, const gp_sample_t *sample, uint64_t *id);

// A round is over, and what it drained is reported.
void gp_polled_round(void);
