// SPDX-License-Identifier: MIT
// How long a thread slept in the slice that it is in: what its account does not have yet.
#pragma once

#include "signal/thread.h"

enum { GP_AWAKE_NS = 50000 }; // a thread that was off the CPU for less since the last look is not worth asking about

// Sleep of `thread` in the present slice of `coro`, up to `now` (ticks), so far as its account lacks it: ns, as the
// account will have it once the slice is settled. Sleeping threads settle nothing. 0 where it hardly slept, or went on
// meanwhile. Threads: any. Cost: ~1 us; ~20 us where it was off the CPU.
uint64_t gp_open_sleep_ns(gp_thread_t *thread, prof_coro_t *coro, uint64_t now);
