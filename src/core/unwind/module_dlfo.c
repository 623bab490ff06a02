// SPDX-License-Identifier: MIT
// Locate modules with glibc's lock-free lookup.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/module.h"

bool gp_module_locate(uintptr_t pc, gp_location_t *where)
{
    struct dl_find_object found;
    // The prototype wants a pointer to non-const, the function only compares it.
    if (_dl_find_object((void *)pc, &found) != 0) // NOLINT(performance-no-int-to-ptr)
        return false;
    bool is_program = found.dlfo_link_map == gp_program.link_map;
    *where = (gp_location_t){
        .lo = is_program ? gp_program.lo : (uintptr_t)found.dlfo_map_start,
        .hi = is_program ? gp_program.hi : (uintptr_t)found.dlfo_map_end,
        .link_map = found.dlfo_link_map,
        .hdr = found.dlfo_eh_frame,
    };
    return true;
}

void gp_module_locate_prepare(void)
{
}
