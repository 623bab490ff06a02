// SPDX-License-Identifier: MIT
// Pools of threads: how much they were used, what waited in their queues, and which functions held their workers.
//
// Model: each call that was handed to a pool is a coroutine of its own, whose ledger tells how long it was in the
// queue (ready) and at work (the rest). So its moments follow from its birth, and the pool's from those of its calls.
// A queue is as long as there are calls that no worker was free for; where the size is not known, as there are calls.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include "facts/dataset.h"

typedef struct gp_pool_holder { // calls of one function
    gp_loc_t entry;             // 0 = not known
    uint32_t coro;              // one of them: number
    uint64_t calls, busy_ns, longest_ns;
} gp_pool_holder_t;

typedef struct gp_pool {
    gp_loc_t loc;
    char name[80];
    uint32_t size;                                  // 0 = not known
    uint64_t calls, unfinished, from_ns, to_ns;     // from its first call to the end of its last
    uint64_t busy_ns, busy_most;                    // sum over its workers; at a time
    uint64_t queue_ns, queue_most;                  // the queue's length times how long
    uint64_t full_ns;                               // while no worker was free
    uint64_t waited_ns, p50_ns, p99_ns, longest_ns; // of its calls, in the queue; nearest rank
    uint64_t requests, requests_ns;                 // that had calls in it, and what these waited
    gp_pool_holder_t *holders;                      // the one that held its workers longest first
    size_t holder_count;
} gp_pool_t;

typedef struct gp_pools {
    gp_pool_t *items; // [count], the one that was waited for longest first
    size_t count;
} gp_pools_t;

// Sum them up. Returns 0 or a negative errno value. Free in either case.
//   dataset: not a part of a capture's time, of which no ledger is known.
//   trace: number of the trace with the calls that count as having waited; 0 = all.
int gp_pools_sum_up(gp_pools_t *pools, const gp_dataset_t *dataset, uint32_t trace);
void gp_pools_free(gp_pools_t *pools);
