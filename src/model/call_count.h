// SPDX-License-Identifier: MIT
// Exact mode's counts for one caller and callee so far.
#pragma once

#include <stdint.h>

#include "model/location.h"

typedef struct gp_call_count {
    uint32_t caller;          //  0 number of the function, 1, 2, ...: never reused in a file; 0 = no caller was seen
    uint32_t callee;          //  4
    gp_loc_t caller_loc;      //  8 its first instruction; 0 with caller 0
    gp_loc_t callee_loc;      // 16
    uint64_t calls;           // 24 calls of callee by caller
    uint64_t nested_calls;    // 32 of those, while another call of callee was in progress on the same coroutine
    uint64_t same_edge_calls; // 40 of those, while another call of callee by caller was
    uint64_t own_cpu_ns;      // 48 in callee itself
    uint64_t own_wait_ns;     // 56 not on the CPU: parked, ready, blocked or preempted
    uint64_t cpu_ns;          // 64 in callee and all its calls; for calls that were not nested
    uint64_t wait_ns;         // 72
    uint64_t nested_cpu_ns;   // 80 the same of calls that were nested, but not of the same edge
    uint64_t nested_wait_ns;  // 88
} gp_call_count_t;            // 96
