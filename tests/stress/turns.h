// SPDX-License-Identifier: MIT
// The loop of runtimes that have none: their coroutines run in turns (turns.c). Each gives the two ways of a switch.
#pragma once

#include "runtime.h"

enum { TURNS_MAX = 16 };

// Make coroutine `id` on a stack, which is to begin in turns_body(). Given by the runtime.
bool turns_make(int id, char *low, size_t stack_bytes);

// Go on with it until it yields, or is over. Given by the runtime.
void turns_resume(int id);

// The one that runs.
int turns_current(void);

// Run its body; the runtime then goes back to the loop.
void turns_body(void);
