// SPDX-License-Identifier: MIT
// Adding up what a recorder has counted. Private to src/core/exact/*.c. Caller holds the lock of exact mode.
#pragma once

#include "exact/exact_stack.h"

// Add to `to` what threads have counted in run number `run`, calls in progress included: as if they ended now.
void gp_exact_sum_run(gp_exact_tree_t *to, const gp_exact_t *recorder, uint64_t run);

// In a forked child: what ran on other threads is over.
void gp_exact_forget_others(void);
