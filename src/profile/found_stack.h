// Stacks that nobody announced.
#ifndef GP_PROFILE_FOUND_STACK_H
#define GP_PROFILE_FOUND_STACK_H

#include <stdint.h>

// Make a coroutine (GP_CORO_FOUND) of the mapping that holds `sp`, unless some coroutine's stack does. Collector only.
// Signals: not safe. Cost: reads /proc/self/maps, 50 us and more.
void gp_found_stack(uintptr_t sp);

#endif
