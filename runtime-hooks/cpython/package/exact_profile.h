// SPDX-License-Identifier: MIT
// An exact profile. Private to exact*.c.
#ifndef GP_CPYTHON_EXACT_PROFILE_H
#define GP_CPYTHON_EXACT_PROFILE_H

#include <stdbool.h>

#include "exact.h"
#include "exact_table.h"

struct exact {
    enum exact_scope scope;
    bool running;
    bool was_taken;  // another tool took a thread away while it ran: calls are missing
    uint64_t thread; // id of the thread state on which it was started
    uint64_t owner;  // serial of the context in which it was started
    exact_table_t table;
    uint64_t total_ticks;
    uint64_t lost;              // calls that could not be noted: memory was short
    struct exact_stack *stacks; // of the present run
    struct exact *next;         // of those that run
};

#endif
