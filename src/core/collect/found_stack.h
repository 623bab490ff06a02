// SPDX-License-Identifier: MIT
// Stacks that no hook announced.
//
// They end without telling: a record whose mapping is gone is retired, so that there are about as many as the program
// has mappings.
#pragma once

#include <stdint.h>

#include "greenprof/coro.h"
#include "signal/thread.h"

// The coroutine with `sp` on its stack. Where there is none, the mapping around `sp` becomes one (GP_CORO_FOUND),
// unless it is the stack of `thread`, or a found one that has grown: then the bounds are moved. Collector only, drain
// lock held. Returns the coroutine and its id, or NULL: there is none, or it takes too long to look. Signals: not safe.
// Cost: reads /proc/self/maps for each stack that is new, 50 us and more.
prof_coro_t *gp_found_stack(gp_thread_t *thread, uintptr_t sp, uint64_t *id);

// Forget found stacks not run for some calls of this and not mapped any more: some of them a call. Collector only, once
// a round, drain lock held. Signals: not safe. Cost: ~30 us.
void gp_found_stacks_look(void);
