// SPDX-License-Identifier: MIT
// Patchable runtimes, whose switch routines no dynamic linker sees, as their folders declare them by the PATCH of
// greenprof_runtime(), which generates the table. Core and command share it.
#pragma once

#include <stdbool.h>
#include <string.h>

#include "patch/elf_symbols.h"

enum { GP_PATCH_FUNCTIONS_MAX = 6, GP_PATCH_CODES_MAX = 2 };

typedef struct gp_patch_function {
    const char *symbol; // NULL = no more
    bool optional;      // the others are of use without it
    struct {
        const unsigned char *bytes;
        size_t size;
    } codes[GP_PATCH_CODES_MAX + 1]; // its code in known builds, by which it is found where names are gone
} gp_patch_function_t;

typedef struct gp_patch_runtime {
    const char *name;  // in GREENPROF_PATCH; the one before may have the same
    const char *title; // as `greenprof runtimes` calls it
    // Names of programs in which it is hooked in a better way, or that have another runtime; NULL = no more.
    const char *unless[3];
    gp_patch_function_t functions[GP_PATCH_FUNCTIONS_MAX + 1];
    const unsigned char *sign; // in the code of every build, unknown ones, too; NULL = nothing
    size_t sign_size;
} gp_patch_runtime_t;

extern const gp_patch_runtime_t gp_patch_runtimes[]; // ended by a NULL name

// Is the runtime asked for?
//   request: GREENPROF_PATCH: names and `auto`, separated by commas; NULL = nothing is.
//   by_name: stored: it is asked for by its name, not by `auto`.
bool gp_patch_is_requested(const char *request, const gp_patch_runtime_t *runtime, bool *by_name);

// Has the one before the same name?
static inline bool gp_patch_is_more(const gp_patch_runtime_t *runtime)
{
    return runtime > gp_patch_runtimes && strcmp(runtime->name, runtime[-1].name) == 0;
}

// Does every word of a request mean something? Else `*word` is set to the first that does not.
bool gp_patch_request_is_known(const char *request, const char **word);

typedef struct gp_patch_found {
    gp_elf_function_t functions[GP_PATCH_FUNCTIONS_MAX]; // code NULL: not there
} gp_patch_found_t;

// Find a runtime's functions in a file; by their code, too, where it was asked for by name. False where it is not
// there, or is hooked in a better way.
bool gp_patch_find(const gp_elf_image_t *image, const gp_patch_runtime_t *runtime, bool by_name,
                   gp_patch_found_t *found);

// Is there a runtime which gp_patch_find() does not find, as neither its names nor its code are known?
bool gp_patch_is_unknown(const gp_elf_image_t *image, const gp_patch_runtime_t *runtime);

// The number of bytes of a function that may be read.
size_t gp_patch_function_size(const gp_elf_function_t *function);
