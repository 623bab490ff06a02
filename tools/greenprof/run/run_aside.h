// SPDX-License-Identifier: MIT
// A process of greenprof's own beside the program that `greenprof run` becomes: not its child, nor in the way of its
// group and terminal, nor ended by what is meant for them.
#pragma once

#include "options.h"

// Begin a process aside: without descriptors but standard error and `program`, which can be read once the program has
// ended, and without the program's arguments. The process ends when `work` returns.
// Returns 0; -ECHILD where it would be the program's child, as that is the first process of a container or adopts
// others; another negative errno value. The program notices nothing in any case.
int gp_run_aside(void (*work)(int program, void *context), void *context, const gp_arguments_t *arguments);
