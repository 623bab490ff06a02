// SPDX-License-Identifier: MIT
// .debug_frame, for modules that have no .eh_frame (code built with -fno-asynchronous-unwind-tables
// -g).
//
// The section is not loaded with the module: it is read from the file outside of any handler, indexed, and published
// for the rest of the process's life. Producer: gp_debug_frame_prepare(), one at a time. Consumers: walks.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct gp_debug_range {
    uintptr_t start, end; // addresses in this process, half-open
    uint32_t fde;         // offset in the section
} gp_debug_range_t;

// `ranges` is sorted by start.
typedef struct gp_debug_frame {
    uintptr_t lo;         // where the module is mapped
    const void *link_map; // see gp_location_t
    uintptr_t bias;       // added to the section's addresses
    const uint8_t *section, *section_end;
    const gp_debug_range_t *ranges;
    size_t count;
} gp_debug_frame_t;

// The index of the module that is mapped at `lo`, or NULL. Signals: safe.
const gp_debug_frame_t *gp_debug_frame_find(uintptr_t lo, const void *link_map);

// Publish an index; it must stay as it is. A full table takes no more. Signals: not safe.
void gp_debug_frame_publish(const gp_debug_frame_t *index);

// Read the sections of modules that were not looked at before. Signals: not safe. Cost: opens each new module's file.
void gp_debug_frame_prepare(void);
