// SPDX-License-Identifier: MIT
// Stacks that no hook announced.
#pragma once

#include <stdint.h>

#include "greenprof/coro.h"

// The coroutine with `sp` on its stack. Where there is none, one is made of the mapping that holds it (GP_CORO_FOUND).
// Collector only, drain lock held. Returns the coroutine and its id, or NULL: there is none, or it takes too long to
// look. Signals: not safe. Cost: reads /proc/self/maps for each stack that is new, 50 us and more.
prof_coro_t *gp_found_stack(uintptr_t sp, uint64_t *id);
