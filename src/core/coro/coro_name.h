// SPDX-License-Identifier: MIT
// Names of coroutines: 47 bytes and a NUL, which may change at any time while others read them.
#pragma once

#include <stdbool.h>

#include "signal/coro_record.h"

enum { GP_CORO_NAME_SIZE = 48 };

// Set it; what is too long is cut between two UTF-8 characters. NULL = no name. Caller holds gp_registry_lock, or is
// the only one that knows the record.
void gp_coro_name_set(prof_coro_t *coro, const char *name);

// Set it if it has none and is `id`, or was until now. Takes gp_registry_lock. Returns whether it did.
bool gp_coro_name_default(prof_coro_t *coro, uint64_t id, const char *name);

// Read it; "" when it has none. Threads: any. Signals: not safe. Cost: ~10 ns; where a thread was preempted while it
// wrote the name, 50 us and more.
void gp_coro_name_get(prof_coro_t *coro, char name[GP_CORO_NAME_SIZE]);

static inline bool gp_coro_is_named(prof_coro_t *coro)
{
    return (atomic_load_explicit(&gp_coro_label(coro)->name[0], memory_order_relaxed) & 0xff) != 0;
}
