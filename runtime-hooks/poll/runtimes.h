// SPDX-License-Identifier: MIT
// What can be polled: the table of runtimes that keep, where it can be read, which coroutine runs. Core and command
// share it.
#ifndef GP_HOOKS_POLL_RUNTIMES_H
#define GP_HOOKS_POLL_RUNTIMES_H

#include "patch/elf_symbols.h"
#include "signal/poll.h"

typedef struct gp_poll_runtime {
    const char *title;     // as `greenprof runtimes` calls it
    const char *variable;  // of the program: what leads to the coroutine that runs
    const char *unless[3]; // names of a runtime that is hooked in a better way, or has another layout; NULL = no more
    const char *patch;     // the entry patch that makes polling unnecessary; NULL = none
    gp_poll_layout_t layout;
} gp_poll_runtime_t;

// Ended by a NULL title. Of rows with the same variable, one behind the other, the first that fits is taken.
extern const gp_poll_runtime_t gp_poll_runtimes[];

// Is the runtime in this program? Then `*variable` is where it keeps what is read.
bool gp_poll_find(const gp_elf_image_t *program, const gp_poll_runtime_t *runtime, gp_elf_variable_t *variable);

#endif
