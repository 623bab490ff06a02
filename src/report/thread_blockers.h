// SPDX-License-Identifier: MIT
// Coroutines that kept the thread for which one on a critical path was ready.
#pragma once

#include "facts/dataset.h"

enum { GP_PATH_KEEPERS_MAX = 4 }; // the longest keepers

typedef struct gp_path_ready {
    uint64_t from_ns, to_ns;
    uint32_t coro, thread;
    uint32_t tag; // the caller's
    uint32_t keeper_count;
    struct {
        uint32_t coro;
        uint64_t ns;
    } keepers[GP_PATH_KEEPERS_MAX]; // together at most as long as it was ready
} gp_path_ready_t;

// Find the keepers of each. Changes the order. Returns 0 or a negative errno value.
int gp_critical_keepers(const gp_dataset_t *dataset, gp_path_ready_t *ready, size_t count);
