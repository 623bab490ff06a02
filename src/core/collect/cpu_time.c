// SPDX-License-Identifier: MIT
#include "collect/cpu_time.h"

#include <stdatomic.h>
#include <time.h>

#include "coro/threads.h"
#include "signal/ticks.h"

static _Atomic uint64_t standing_ns;

uint64_t gp_cpu_time_thread(int tid)
{
    return gp_clock_ns(gp_thread_clock(tid));
}

uint64_t gp_cpu_time_process(void)
{
    uint64_t standing = atomic_load_explicit(&standing_ns, memory_order_relaxed);
    if (standing != 0)
        return standing;
    uint64_t own = gp_thread_helper_cpu_ns(), all = gp_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    return all > own ? all - own : 0;
}

void gp_cpu_time_stand_at(uint64_t process_ns)
{
    atomic_store_explicit(&standing_ns, process_ns, memory_order_relaxed);
}

bool gp_cpu_time_stands(void)
{
    return atomic_load_explicit(&standing_ns, memory_order_relaxed) != 0;
}
