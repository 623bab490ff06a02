// SPDX-License-Identifier: MIT
// The main thread's stack, which grows.
//
// The limit of its growth can be raised while the program runs (compilers do so), so its bounds are as far as it could
// get; where it gets further, collect/found_stack.c moves them. A walk reads from the stack pointer upwards, where all
// of it is there.
#pragma once

#include <stdint.h>

// Its bounds [*lo, *hi), as any thread can find them; 0, 0 where they are not known. In a child forked by another
// thread the main thread is elsewhere. Signals: not safe. Cost: reads /proc/self/maps.
void gp_main_stack(uintptr_t *lo, uintptr_t *hi);
