// SPDX-License-Identifier: MIT
// Stacks that nobody announced.
#ifndef GP_COLLECT_FOUND_STACK_H
#define GP_COLLECT_FOUND_STACK_H

#include <stdint.h>

#include "greenprof/coro.h"

// The coroutine whose stack holds `sp`. Where there is none, one is made of the mapping that does (GP_CORO_FOUND).
// Collector only, drain lock held. Returns the coroutine and its id, or NULL: there is none, or it takes too long to
// look. Signals: not safe. Cost: reads /proc/self/maps for each stack that is new, 50 us and more.
prof_coro_t *gp_found_stack(uintptr_t sp, uint64_t *id);

#endif
