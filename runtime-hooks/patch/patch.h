// SPDX-License-Identifier: MIT
// Entry patches: a function's first instructions become a jump to a stub of ours, which goes on to them where they were
// moved.
//
// Model: gp_patch_prepare() writes everything beside the function; the function itself is changed by gp_patch_apply()
// alone, as its last step. So whatever is refused leaves the function as it was. Pages are written, then executed,
// never both at once.
//
// Order of calls: gp_patch_is_alone() -> gp_patch_prepare()... -> gp_patch_apply()....
// Threads: there is one. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patch/prologue.h"

typedef struct gp_patch {
    uintptr_t function;
    unsigned char jump[GP_PROLOGUE_JUMP_BYTES]; // replaces its first bytes
    void *original;                             // the function, as it was, to be called
} gp_patch_t;

// Is the caller the only thread of the process?
bool gp_patch_is_alone(void);

// Make ready to have calls of `function` go to `stub`.
//   size: bytes of the function, or how many may be read there.
// Returns 0; what gp_prologue_move() returns; -ENOMEM where no memory is near enough; the error of mprotect(2) where
// memory that was written must not be executed.
int gp_patch_prepare(gp_patch_t *patch, uintptr_t function, size_t size, const void *stub);

// Do so. Returns 0 or the error of mprotect(2): then nothing has changed.
int gp_patch_apply(const gp_patch_t *patch);
