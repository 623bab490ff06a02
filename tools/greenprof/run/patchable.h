// SPDX-License-Identifier: MIT
// Runtimes of a program that can be hooked by entry patches (runtime-hooks/patch).
#pragma once

#include "patch/targets.h"

typedef enum gp_patchable {
    GP_PATCHABLE_NOT,     // the program has no such runtime, or a better hook for it
    GP_PATCHABLE_UNKNOWN, // its code is not known, nor are there names
    GP_PATCHABLE_REFUSED, // has it, but in another form than the known ones
    GP_PATCHABLE_BY_NAME, // only if asked for by its name: its code is known, its symbols are gone
    GP_PATCHABLE_ITSELF,  // `auto` does it
} gp_patchable_t;

// The outcome of patching the program in the file `path`.
//   refused: set to a function that cannot be patched, if any.
gp_patchable_t gp_patchable(const char *path, const gp_patch_runtime_t *runtime, const char **refused);

// Settle what `run` is to ask for: as given (NULL: the environment, else `auto`), and set the environment accordingly.
// Returns 0 or an exit status, with a message: a word is not known, or the program has what is asked for and it is
// refused.
int gp_run_patch(const char *request, const char *program);
