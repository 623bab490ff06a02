// An index over a .debug_frame section that was read from a file outside any handler.
#ifndef GP_UNWIND_DEBUG_FRAME_H
#define GP_UNWIND_DEBUG_FRAME_H

#include <stddef.h>
#include <stdint.h>

typedef struct gp_debug_range {
    uint64_t start, end; // link-time addresses, half-open
    uint32_t fde;        // offset in the section
} gp_debug_range_t;

// Published once per module, never changed, never freed. `ranges` is sorted by start.
typedef struct gp_debug_frame {
    uintptr_t lo; // mapping that it belongs to
    uintptr_t bias;
    const uint8_t *section, *section_end;
    const gp_debug_range_t *ranges;
    size_t count;
} gp_debug_frame_t;

#endif
