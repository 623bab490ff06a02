// SPDX-License-Identifier: MIT
#include "symbol/dwarf_unit.h"

typedef struct ranges {
    const gp_dwarf_t *dwarf;
    const gp_dwarf_unit_t *unit;
    gp_dwarf_range_visit_t visit;
    void *context;
} ranges_t;

// Linkers resolve addresses of discarded code to 0 or 1, or to the highest addresses.
static int dwarf_ranges_visit_range(const ranges_t *ranges, uint64_t lo, uint64_t hi)
{
    if (lo <= 1 || hi <= lo || lo >= UINT64_MAX - 1)
        return 0;
    return ranges->visit(ranges->context, lo, hi);
}

static int dwarf_ranges_visit_low_high(const ranges_t *ranges, const gp_dwarf_extent_t *extent)
{
    uint64_t lo, hi;
    if (!gp_dwarf_value_address(ranges->dwarf, ranges->unit, &extent->low, &lo))
        return 0;
    if (gp_dwarf_value_address(ranges->dwarf, ranges->unit, &extent->high, &hi))
        return dwarf_ranges_visit_range(ranges, lo, hi);
    if (gp_dwarf_value_constant(&extent->high, &hi)) // a length, since DWARF 4
        return dwarf_ranges_visit_range(ranges, lo, lo + hi);
    return 0;
}

// .debug_ranges, DWARF 2-4.
static int dwarf_ranges_visit_old_list(const ranges_t *ranges, uint64_t offset)
{
    uint8_t bytes = ranges->unit->address_bytes;
    uint64_t highest = bytes == 8 ? UINT64_MAX : UINT32_MAX, base = ranges->unit->low_pc;
    gp_cursor_t cursor = gp_cursor(ranges->dwarf->sections[GP_DEBUG_RANGES], offset);
    int result = 0;
    while (result == 0) {
        uint64_t lo = gp_read_uint(&cursor, bytes), hi = gp_read_uint(&cursor, bytes);
        if (cursor.bad || (lo == 0 && hi == 0))
            break;
        if (lo == highest)
            base = hi;
        else if (lo != hi)
            result = dwarf_ranges_visit_range(ranges, base + lo, base + hi);
    }
    return result;
}

typedef struct entry { // of a range list
    uint64_t lo, hi;
    bool is_range;
} entry_t;

static bool dwarf_ranges_indexed(const ranges_t *ranges, gp_cursor_t *cursor, uint64_t *address)
{
    return gp_dwarf_indexed_address(ranges->dwarf, ranges->unit, gp_read_uleb(cursor), address);
}

// Returns false at the end of the list, and where it cannot be read.
static bool dwarf_ranges_read_entry(const ranges_t *ranges, gp_cursor_t *cursor, uint64_t *base, entry_t *entry)
{
    uint8_t bytes = ranges->unit->address_bytes;
    *entry = (entry_t){.is_range = true};
    switch (gp_read_u8(cursor)) {
    case DW_RLE_base_addressx:
        entry->is_range = false;
        return dwarf_ranges_indexed(ranges, cursor, base);
    case DW_RLE_base_address:
        entry->is_range = false;
        *base = gp_read_uint(cursor, bytes);
        return true;
    case DW_RLE_startx_endx:
        return dwarf_ranges_indexed(ranges, cursor, &entry->lo) && dwarf_ranges_indexed(ranges, cursor, &entry->hi);
    case DW_RLE_startx_length:
        if (!dwarf_ranges_indexed(ranges, cursor, &entry->lo))
            return false;
        entry->hi = entry->lo + gp_read_uleb(cursor);
        return true;
    case DW_RLE_offset_pair:
        entry->lo = *base + gp_read_uleb(cursor);
        entry->hi = *base + gp_read_uleb(cursor);
        return true;
    case DW_RLE_start_end:
        entry->lo = gp_read_uint(cursor, bytes);
        entry->hi = gp_read_uint(cursor, bytes);
        return true;
    case DW_RLE_start_length:
        entry->lo = gp_read_uint(cursor, bytes);
        entry->hi = entry->lo + gp_read_uleb(cursor);
        return true;
    default: // DW_RLE_end_of_list among them
        return false;
    }
}

// .debug_rnglists, DWARF 5.
static int dwarf_ranges_visit_new_list(const ranges_t *ranges, uint64_t offset)
{
    gp_cursor_t cursor = gp_cursor(ranges->unit->sections[GP_DEBUG_RNGLISTS], offset);
    uint64_t base = ranges->unit->low_pc;
    int result = 0;
    entry_t entry;
    while (result == 0 && dwarf_ranges_read_entry(ranges, &cursor, &base, &entry) && !cursor.bad)
        if (entry.is_range && entry.lo != entry.hi)
            result = dwarf_ranges_visit_range(ranges, entry.lo, entry.hi);
    return result;
}

// Where in .debug_rnglists list number `index` of the unit is.
static bool dwarf_ranges_list_offset(const ranges_t *ranges, uint64_t index, uint64_t *offset)
{
    gp_bytes_t lists = ranges->unit->sections[GP_DEBUG_RNGLISTS];
    gp_cursor_t cursor = gp_cursor(lists, ranges->unit->rnglists_base);
    if (index >= lists.len)
        return false;
    gp_cursor_skip(&cursor, index * ranges->unit->offset_bytes);
    *offset = ranges->unit->rnglists_base + gp_read_uint(&cursor, ranges->unit->offset_bytes);
    return !cursor.bad;
}

int gp_dwarf_ranges(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, const gp_dwarf_extent_t *extent,
                    gp_dwarf_range_visit_t visit, void *context)
{
    const ranges_t ranges = {dwarf, unit, visit, context};
    uint64_t offset;
    if (extent->ranges.form == 0)
        return dwarf_ranges_visit_low_high(&ranges, extent);
    if (extent->ranges.form == DW_FORM_rnglistx)
        return dwarf_ranges_list_offset(&ranges, extent->ranges.number, &offset)
                   ? dwarf_ranges_visit_new_list(&ranges, offset)
                   : 0;
    if (!gp_dwarf_value_constant(&extent->ranges, &offset))
        return 0;
    if (unit->split != NULL)
        offset += unit->ranges_base;
    return unit->version >= 5 ? dwarf_ranges_visit_new_list(&ranges, offset)
                              : dwarf_ranges_visit_old_list(&ranges, offset);
}
