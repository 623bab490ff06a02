// SPDX-License-Identifier: MIT
// The mappings of this process, by address. Source: proc_pid_maps(5).
//
// Signals: not safe. Nothing here calls malloc: a program's own one may not be ready yet. Cost: ~1 us a mapping.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct gp_mapping { // [lo, hi)
    uintptr_t lo, hi;
    int protection; // PROT_*
    uint64_t inode; // 0 = no file
    bool is_heap;   // what brk() gives
    // As the kernel writes it, "" = none; cut where it is very long. Only for as long as the mapping is visited.
    const char *path;
} gp_mapping_t;

// Returns whether the next mapping is wanted.
typedef bool gp_maps_visit_t(const gp_mapping_t *mapping, void *argument);

// Returns 0, or a negative errno value where the list cannot be read. Threads: any.
int gp_maps_each(gp_maps_visit_t *visit, void *argument);

// The mapping that holds `address`. Returns 0, -EFAULT where there is none, or as gp_maps_each().
int gp_maps_find(uintptr_t address, gp_mapping_t *mapping);
