// SPDX-License-Identifier: MIT
// Which slots of modules' global offset tables are of functions that the core defines.
//
// Threads: one at a time. Signals: not safe. Cost: ~1 ms for 10,000 slots.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_got_call { // of such a function, in a module's slot
    const struct dl_phdr_info *info;
    uintptr_t *at;     // the slot
    uintptr_t after;   // the core's function of that name
    bool is_undefined; // by the module itself
    bool is_protected; // the slot, once the module is relocated
} gp_got_call_t;

typedef void gp_got_visit_t(const gp_got_call_t *call);

// Visit those of all modules from number `first` of the loader's list on, but for the core, the C library and the
// loader, while that list is held. A module that the loader has yet to relocate is left out.
// Returns whether there is one.
bool gp_got_calls_each(gp_got_visit_t *visit, size_t first);

// Is it in a segment of the module?
bool gp_got_holds(const struct dl_phdr_info *info, uintptr_t address);
