// SPDX-License-Identifier: MIT
// Pools of threads that calls are handed to, by number.
//
// Model: a hook numbers a pool as a call is handed to it, and the call's coroutine keeps the number (gp_coro_rare_t):
// its time until it runs is time in the pool's queue. Pools of the same name and size share a number. Nothing is ever
// removed: the table is bounded, and pools without room are one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/location.h"

enum { GP_POOL_NAME_SIZE = 64, GP_POOLS_MAX = 1024 };

// The number of a pool, from 1.
//   size: of its threads, at most; 0 = not known.
// Threads: one at a time, as the hook's language has a lock. Signals: not safe.
uint32_t gp_pool_number(const char *name, uint32_t size);

// "[pool NAME of SIZE]" as a location. Caller holds the drain lock.
gp_loc_t gp_pool_locate(uint32_t number);
