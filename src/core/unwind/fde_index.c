// SPDX-License-Identifier: MIT
// Binary search in .eh_frame_hdr and in prepared .debug_frame indexes.
#include "unwind/fde_index.h"

#include <string.h>

#include "unwind/debug_frame.h"

// Tables that cannot be searched are walked entry by entry, but not for longer than a handler may take.
enum { SCAN_MAX = 4096 };

static int32_t fde_index_pair_word(const gp_eh_index_t *eh, uint32_t pair, unsigned word)
{
    int32_t value;
    memcpy(&value, eh->table + (size_t)pair * 8 + word * 4u, sizeof value);
    return value;
}

// The last pair that starts at or before `pc`, or NULL.
static const uint8_t *fde_index_search(const gp_eh_index_t *eh, uintptr_t pc)
{
    intptr_t want = (intptr_t)(pc - (uintptr_t)eh->hdr);
    uint32_t base = 0, len = eh->count;
    while (len > 1) {
        uint32_t half = len / 2;
        base += fde_index_pair_word(eh, base + half, 0) <= want ? half : 0;
        len -= half;
    }
    return fde_index_pair_word(eh, base, 0) <= want ? eh->hdr + fde_index_pair_word(eh, base, 1) : NULL;
}

static bool fde_index_covers(const gp_fde_t *fde, uintptr_t pc)
{
    return pc >= fde->start && pc < fde->end;
}

static bool fde_index_scan(const gp_cfi_section_t *section, const uint8_t *at, uintptr_t pc, gp_fde_t *fde)
{
    for (unsigned i = 0; i < SCAN_MAX && at != NULL; i++) {
        const uint8_t *next;
        if (gp_cfi_decode(section, at, fde, &next) && fde_index_covers(fde, pc))
            return true;
        at = next;
    }
    return false;
}

bool gp_fde_find(const gp_eh_index_t *eh, uintptr_t pc, gp_cfi_section_t *section, gp_fde_t *fde)
{
    if (eh->eh_end == NULL)
        return false;
    *section = (gp_cfi_section_t){
        .start = eh->eh_frame,
        .end = eh->eh_end,
        .data_base = (uintptr_t)eh->hdr,
    };
    if (eh->table == NULL)
        return fde_index_scan(section, eh->eh_frame, pc, fde);
    const uint8_t *at = fde_index_search(eh, pc), *next;
    return at != NULL && gp_cfi_decode(section, at, fde, &next) && fde_index_covers(fde, pc);
}

static bool fde_index_eh_frame_row(const gp_eh_index_t *eh, uintptr_t pc, gp_row_t *row)
{
    gp_cfi_section_t section;
    gp_fde_t fde;
    return gp_fde_find(eh, pc, &section, &fde) && gp_cfi_row(&section, &fde, pc, row);
}

static bool fde_index_debug_frame_row(const gp_debug_frame_t *debug, uintptr_t pc, gp_row_t *row)
{
    size_t base = 0, len = debug->count;
    while (len > 1) {
        size_t half = len / 2;
        base += debug->ranges[base + half].start <= pc ? half : 0;
        len -= half;
    }
    if (len == 0 || pc < debug->ranges[base].start || pc >= debug->ranges[base].end)
        return false;
    gp_cfi_section_t section = {
        .start = debug->section,
        .end = debug->section_end,
        .bias = debug->bias,
        .debug_frame = true,
    };
    gp_fde_t fde;
    const uint8_t *next;
    return gp_cfi_decode(&section, debug->section + debug->ranges[base].fde, &fde, &next) &&
           fde_index_covers(&fde, pc) && gp_cfi_row(&section, &fde, pc, row);
}

bool gp_fde_row(const gp_unwind_module_t *module, uintptr_t pc, gp_row_t *row)
{
    if (fde_index_eh_frame_row(&module->eh, pc, row))
        return true;
    const gp_debug_frame_t *debug = gp_debug_frame_find(module->where.lo, module->where.link_map);
    return debug != NULL && fde_index_debug_frame_row(debug, pc, row);
}
