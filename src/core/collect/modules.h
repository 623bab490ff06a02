// SPDX-License-Identifier: MIT
// The modules of this process, with ids that stay theirs, and locations in them.
//
// Memory is bounded: a file of one build is one module, wherever it is loaded and however often; there are
// GP_MODULES_MAX different ones, as many as locations can tell apart. Modules beyond are counted, and have no names.
// Caller holds the drain lock everywhere. Cost: O(modules that are loaded) after a change, however many there were
// before.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/location.h"

typedef struct gp_module {
    uint32_t id;
    uint32_t build_id_len;
    uint8_t build_id[20]; // as in gp_module_record_t
    uintptr_t start, end, bias;
    char *path;
    bool own;    // greenprof itself: its frames are not shown
    bool loaded; // false: dlclosed; kept for the locations that name it
    bool used;   // a location in it was asked for
} gp_module_t;

enum { GP_MODULES_MAX = 65533 };

// Look at the loader's list if it changed. Returns true when the table did.
bool gp_modules_refresh(void);

// The location of a program counter; GP_LOC_OWN for greenprof's own code.
gp_loc_t gp_modules_locate(uintptr_t pc);

// Greenprof's own range of code within a module of the program's (libgreenprof.a); else 0, 0.
void gp_modules_own_code(uint64_t range[2]);

// All modules ever seen. The array moves when the table grows.
const gp_module_t *gp_modules_all(size_t *count);

// How many locations were looked up so far, many of them again. Needs no lock.
uint32_t gp_modules_looked_up(void);

// Locations looked up after the first `since`, also in modules that are gone; the latest, where there are more than
// fit. Returns how many.
enum { GP_MODULES_LATEST = 4096 };
size_t gp_modules_latest(uint32_t since, gp_loc_t locs[GP_MODULES_LATEST]);

// How many were loaded that found no room. Needs no lock.
uint64_t gp_modules_lost(void);
