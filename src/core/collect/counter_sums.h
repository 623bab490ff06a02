// SPDX-License-Identifier: MIT
// Sums of counters over threads.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/counters.h"

// Sums of threads with blocks given back. Guarded by the drain lock.
extern uint64_t gp_counters_gone[GP_COUNTER_COUNT];

// Sums of some counters over all threads, those that are gone included; no thread's clock is read. Caller holds the
// drain lock.
void gp_counters_sum(const enum gp_counter which[], uint64_t sums[], size_t count);
