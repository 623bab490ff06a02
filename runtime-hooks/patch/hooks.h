// SPDX-License-Identifier: MIT
// Replacements of the functions of targets.h. An assembly stub (patch_stub_x86_64.inc) or a C function is called
// gp_patch_NAME; gp_patch_real_NAME is the function as it was, once it is patched.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "patch/elf_symbols.h"

typedef struct gp_patch_hook {
    const char *symbol;
    const void *stub;
    void **original;
} gp_patch_hook_t;

// The hook of a function, or NULL.
const gp_patch_hook_t *gp_patch_hook(const char *symbol);

// Are the functions of this runtime (targets.h) patched?
bool gp_patch_is_done(const char *name);

typedef struct gp_patch_program {
    gp_elf_image_t image; // of its file; gp_elf_unmap() gives it back
    uintptr_t base;       // added to the file's addresses
} gp_patch_program_t;

// Map the file of this process' program. Returns 0 or a negative errno value.
int gp_patch_open_program(gp_patch_program_t *program);

// Where the program has a function that it does not export, by its symbols; NULL = nowhere. Cost: maps the program's
// file.
void *gp_patch_program_function(const char *name);

// In a stand-in written in C: the function as it was, of type `type`.
#define GP_PATCHED(type, name) ((type *)gp_patch_real_##name)
