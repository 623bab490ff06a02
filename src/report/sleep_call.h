// SPDX-License-Identifier: MIT
// Is the function in which a thread sleeps one in which loops wait for something to do? By its name.
#pragma once

typedef enum gp_sleep_call {
    GP_SLEEP_OTHER,
    GP_SLEEP_LOOP, // nothing but loops
    GP_SLEEP_MANY, // loops, too
} gp_sleep_call_t;

// function: the innermost of the stack, as symbols have it.
gp_sleep_call_t gp_sleep_call(const char *function);
