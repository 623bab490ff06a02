// SPDX-License-Identifier: MIT
// Interpreters of languages whose functions greenprof does not name: stacks show the interpreter's own.
#pragma once

typedef struct gp_interpreter {
    const char *language;
    const char *words; // of its coroutines, behind "LANGUAGE's functions are not named here"
} gp_interpreter_t;

// The one that a module is, by its name: "libruby-3.1.so.3.1", "php8.2", "lua5.4". NULL = none.
const gp_interpreter_t *gp_interpreter_of(const char *module);
