// SPDX-License-Identifier: MIT
// The modules of this process, with ids that stay theirs, and locations in them.
// Caller holds the drain lock everywhere.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/location.h"

typedef struct gp_module {
    uint32_t id;
    uint32_t build_id_len;
    uint8_t build_id[20];
    uintptr_t start, end, bias;
    char *path;
    bool own;    // greenprof itself: its frames are not shown
    bool loaded; // false: dlclosed; kept for the locations that name it
} gp_module_t;

enum { GP_LOC_OWN = 0 }; // no module has id 0 at address 0: stands for a frame of greenprof's own

// Look at the loader's list if it changed. Returns true when the table did.
bool gp_modules_refresh(void);

// The location of a program counter; GP_LOC_OWN for greenprof's own code.
gp_loc_t gp_modules_locate(uintptr_t pc);

// All modules ever seen. The array moves when the table grows.
const gp_module_t *gp_modules_all(size_t *count);
