// SPDX-License-Identifier: MIT
// Locations of the places where coroutines are created (coro/spawn.h).
#pragma once

#include <stdbool.h>

// Make sure that every site has its locations. Caller holds the drain lock; modules are up to date. Signals: not safe.
void gp_spawn_locate(void);

// A look-up is under way: what is looked up belongs to a site, and stays. Drain lock.
extern bool gp_spawn_is_locating;
