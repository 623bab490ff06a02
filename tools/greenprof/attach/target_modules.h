// SPDX-License-Identifier: MIT
// The ELF files that are mapped into another process, and where their functions are there.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GP_TARGET_PATH_SIZE = 4096 };

typedef struct gp_target_module {
    char *path; // as the process knows it
    const char
        *file; // that is the same, where the process' has no name; NULL = the path, in the process' root directory
    uint64_t lo, hi, first_hi; // of all its mappings; where the first one ends
    uint64_t code_lo, code_hi; // of what may be executed
} gp_target_module_t;

typedef struct gp_target_modules {
    pid_t pid;
    gp_target_module_t *items;
    size_t count;
} gp_target_modules_t;

typedef struct gp_target_function {
    uint64_t address, size;
} gp_target_function_t;

// Read what is mapped now. Returns 0 or a negative errno value; free it in either case.
int gp_target_modules_read(pid_t pid, gp_target_modules_t *modules);
void gp_target_modules_free(gp_target_modules_t *modules);

// The first module with a file name that begins so; NULL where there is none.
const gp_target_module_t *gp_target_module_named(const gp_target_modules_t *modules, const char *beginning);

// Is a module mapped from this file? Its first page says so, with the headers and the build ID.
bool gp_target_module_is(const gp_target_modules_t *modules, const gp_target_module_t *module, const char *file);

// Functions of a module by name, `count` of them; one that it does not define has the address 0.
// Returns 0, or a negative errno value where its file cannot be read, or is another one by now (-ESTALE).
int gp_target_functions(const gp_target_modules_t *modules, const gp_target_module_t *module, const char *const *names,
                        size_t count, gp_target_function_t *functions);

// The first place in a function where its code is these bytes; 0 = there is none.
uint64_t gp_target_find_code(const gp_target_modules_t *modules, const gp_target_module_t *module, const char *name,
                             const unsigned char *code, size_t size);
