// SPDX-License-Identifier: MIT
// Greenprof's part of a program's CPU time, and what it is to be at most by default.
#pragma once

#include <stdint.h>

#include "model/counters.h"

enum {
    GP_DEFAULT_COST_PPM = 20000,      // 2 %
    GP_OWN_COST_LEAST_NS = 300000000, // of CPU time: a share of less is that of the start
};

// In the program's own threads.
static inline uint64_t gp_own_cost_in_threads(const uint64_t *counters)
{
    return counters[GP_COUNTER_HANDLER_NS] + counters[GP_COUNTER_DELIVERY_NS] + counters[GP_COUNTER_HOOK_NS];
}

// All of it, beside what the program uses by itself.
//   process_ns: of the program's threads, with greenprof's part in them. own_ns: of greenprof's own threads.
static inline double gp_own_cost_share(const uint64_t *counters, uint64_t process_ns, uint64_t own_ns)
{
    uint64_t inside_ns = gp_own_cost_in_threads(counters);
    return process_ns > inside_ns ? (double)(inside_ns + own_ns) / (double)(process_ns - inside_ns) : 0;
}
