// SPDX-License-Identifier: MIT
// Leading the interpreter's own calls of functions elsewhere: where libgreenprof came too late to be found first by the
// dynamic linker, an interpreter that imports the package greenprof calls libc.
#pragma once

#include <stddef.h>

typedef struct gp_redirection {
    const char *name; // imported function
    void *to;
} gp_redirection_t;

// Write `to` into the slots through which the module around the address `inside` calls its import of this name. Other
// modules are not touched. Returns how many slots there were.
size_t gp_redirect(const void *inside, const gp_redirection_t *list, size_t count);
