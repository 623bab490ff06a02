// SPDX-License-Identifier: MIT
#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>

// Read the header of the unit at the cursor. Returns false when there is none that can be read; the
// cursor is behind the unit where its length is known.
static bool dwarf_unit_read_header(gp_dwarf_unit_t *unit, gp_cursor_t *cursor)
{
    uint64_t length = gp_cursor_u32(cursor);
    unit->offset_bytes = 4;
    if (length == UINT32_MAX) {
        unit->offset_bytes = 8;
        length = gp_read_uint(cursor, 8);
    }
    gp_cursor_t body = *cursor;
    gp_cursor_skip(cursor, length);
    if (cursor->bad)
        return false;
    body.end = cursor->pos;
    unit->version = gp_cursor_u16(&body);
    uint8_t type = unit->version >= 5 ? gp_read_u8(&body) : DW_UT_compile;
    if (unit->version >= 5)
        unit->address_bytes = gp_read_u8(&body);
    unit->abbrev_offset = gp_read_uint(&body, unit->offset_bytes);
    if (unit->version < 5)
        unit->address_bytes = gp_read_u8(&body);
    if (type == DW_UT_skeleton || type == DW_UT_split_compile)
        unit->dwo_id = gp_read_uint(&body, 8);
    else if (type == DW_UT_type || type == DW_UT_split_type)
        gp_cursor_skip(&body, 8u + unit->offset_bytes);
    unit->die = unit->start + (uint64_t)(body.pos - (cursor->pos - length)) + (unit->offset_bytes == 8 ? 12 : 4);
    return !body.bad && unit->version >= 2 && unit->version <= 5 &&
           (unit->address_bytes == 4 || unit->address_bytes == 8);
}

bool gp_dwarf_unit_next(const gp_bytes_t *sections, gp_cursor_t *cursor, gp_dwarf_unit_t *unit)
{
    const uint8_t *info = sections[GP_DEBUG_INFO].data;
    while (!cursor->bad && gp_cursor_left(cursor) > 0) {
        *unit = (gp_dwarf_unit_t){.sections = sections, .start = (uint64_t)(cursor->pos - info)};
        bool readable = dwarf_unit_read_header(unit, cursor);
        unit->end = cursor->bad ? unit->start : (uint64_t)(cursor->pos - info);
        if (readable)
            return true;
    }
    return false;
}

typedef struct root { // attributes of a unit's first DIE that need others to be understood
    gp_dwarf_value_t directory, dwo_name;
    gp_dwarf_extent_t extent;
} root_t;

static void dwarf_unit_take_attribute(gp_dwarf_unit_t *unit, root_t *root, uint16_t name, const gp_dwarf_value_t *value)
{
    switch (name) {
    case DW_AT_comp_dir:
        root->directory = *value;
        break;
    case DW_AT_low_pc:
        root->extent.low = *value;
        break;
    case DW_AT_high_pc:
        root->extent.high = *value;
        break;
    case DW_AT_ranges:
        root->extent.ranges = *value;
        break;
    case DW_AT_stmt_list:
        unit->line_table = *value;
        break;
    case DW_AT_str_offsets_base:
        unit->str_offsets_base = value->number;
        break;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
        unit->addr_base = value->number;
        break;
    case DW_AT_rnglists_base:
        unit->rnglists_base = value->number;
        break;
    case DW_AT_GNU_ranges_base:
        unit->ranges_base = value->number;
        break;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
        root->dwo_name = *value;
        break;
    case DW_AT_GNU_dwo_id:
        unit->dwo_id = value->number;
        break;
    default:
        break;
    }
}

bool gp_dwarf_unit_root(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, gp_dwarf_extent_t *extent)
{
    const gp_bytes_t until = {unit->sections[GP_DEBUG_INFO].data, (size_t)unit->end};
    gp_cursor_t cursor = gp_cursor(until, unit->die);
    uint64_t code = gp_read_uleb(&cursor);
    gp_dwarf_attribute_t attribute;
    gp_cursor_t attributes;
    root_t root = {0};
    if (!gp_dwarf_attributes_find(room, unit, code, &attributes))
        return false;
    while (!cursor.bad && gp_dwarf_attribute_next(&attributes, &attribute)) {
        gp_dwarf_value_t value = gp_dwarf_value(&cursor, unit, &attribute);
        dwarf_unit_take_attribute(unit, &root, attribute.name, &value);
    }
    unit->directory = gp_dwarf_value_text(room->dwarf, unit, &root.directory);
    unit->dwo_name = gp_dwarf_value_text(room->dwarf, unit, &root.dwo_name);
    gp_dwarf_value_address(room->dwarf, unit, &root.extent.low, &unit->low_pc);
    *extent = root.extent;
    return !cursor.bad;
}

static int dwarf_unit_add_span(void *context, uint64_t lo, uint64_t hi)
{
    gp_dwarf_t *dwarf = context;
    if (gp_grow(&dwarf->spans, &dwarf->span_capacity, dwarf->span_count, sizeof(*dwarf->spans)) < 0)
        return -ENOMEM;
    dwarf->spans[dwarf->span_count++] = (gp_dwarf_span_t){lo, hi, (uint32_t)dwarf->unit_count - 1};
    return 0;
}

static int dwarf_unit_add_unit(gp_dwarf_t *dwarf, const gp_dwarf_unit_t *header)
{
    gp_dwarf_extent_t extent;
    if (gp_grow(&dwarf->units, &dwarf->unit_capacity, dwarf->unit_count, sizeof(*dwarf->units)) < 0)
        return -ENOMEM;
    gp_dwarf_unit_t *unit = &dwarf->units[dwarf->unit_count];
    *unit = *header;
    unit->listed_end = unit->end;
    unit->listed_die = unit->die;
    if (!gp_dwarf_unit_root(&dwarf->room, unit, &extent))
        return 0;
    dwarf->unit_count++;
    return gp_dwarf_ranges(dwarf, unit, &extent, dwarf_unit_add_span, dwarf);
}

static int dwarf_unit_compare_spans(const void *left, const void *right)
{
    const gp_dwarf_span_t *a = left, *b = right;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

int gp_dwarf_units_load(gp_dwarf_t *dwarf)
{
    gp_cursor_t cursor = gp_cursor(dwarf->sections[GP_DEBUG_INFO], 0);
    gp_dwarf_unit_t unit;
    int result = 0;
    while (result == 0 && gp_dwarf_unit_next(dwarf->sections, &cursor, &unit))
        result = dwarf_unit_add_unit(dwarf, &unit);
    gp_sort(dwarf->spans, dwarf->span_count, sizeof(*dwarf->spans), dwarf_unit_compare_spans);
    gp_buckets_make(&dwarf->span_buckets, dwarf->spans, dwarf->span_count, sizeof(*dwarf->spans));
    return result;
}

gp_dwarf_unit_t *gp_dwarf_unit_at(gp_dwarf_t *dwarf, uint64_t offset)
{
    size_t lo = 0, hi = dwarf->unit_count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (dwarf->units[middle].listed_end <= offset)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < dwarf->unit_count && dwarf->units[lo].listed_die <= offset ? &dwarf->units[lo] : NULL;
}

void gp_dwarf_unit_free(gp_dwarf_unit_t *unit)
{
    gp_dwarf_split_free(unit->split);
    free(unit->files);
    free(unit->functions);
    free(unit->ranges.items);
    gp_buckets_free(&unit->line_buckets);
    gp_buckets_free(&unit->range_buckets);
}
