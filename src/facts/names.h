// SPDX-License-Identifier: MIT
// Names of locations: functions of modules and those inlined into them, functions of languages, pseudo-frames.
//
// Threads: one namer at a time a thread; the symbolizer may be shared. Signals: not safe.
#pragma once

#include "facts/facts.h"
#include "symbol/symbolizer.h"

enum { GP_NAMER_MODULES = 64 };

typedef struct gp_namer { // zero-initialized but for the first three
    const gp_facts_t *facts;
    gp_symbolizer_t *symbolizer;
    bool is_shared;       // the symbolizer has several processes: code without a module is of one of them alone
    gp_symbolizer_t *jit; // for that code; NULL = there is none yet
    struct {
        const char *path;
        uint32_t number;
    } modules[GP_NAMER_MODULES]; // that were asked about last: the symbolizer's
} gp_namer_t;

typedef struct gp_name {
    // The innermost of the functions inlined there; `outer` leads to the others. Without a file, `file` is "".
    const gp_symbol_t *symbol;
    bool is_pseudo;   // stands for no known function
    gp_symbol_t made; // of what is in no module
} gp_name_t;

// Returns 0 or -ENOMEM. Names live as long as the facts and the symbolizer, one that was made as long as `name`.
int gp_facts_name(gp_namer_t *namer, gp_loc_t loc, gp_name_t *name);

// The number that the symbolizer has for a module of the facts, or GP_SYMBOLIZER_NO_MODULE.
uint32_t gp_facts_module_number(gp_namer_t *namer, gp_loc_t loc);

// Forget all of the symbolizer, which is going to be another one.
void gp_namer_forget(gp_namer_t *namer);

// The text that a pseudo-frame (enum gp_pseudo) is shown as: "[switching]".
const char *gp_pseudo_name(uint64_t pseudo);
