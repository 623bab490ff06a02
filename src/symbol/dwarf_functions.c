// SPDX-License-Identifier: MIT
// The functions of a unit that have code of their own. Functions inlined into one are read when an address of it is
// asked for.
#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>

typedef struct search {
    const gp_dwarf_t *dwarf;
    gp_dwarf_unit_t *unit;
    bool everywhere;
    bool complete; // nothing was left out that may have functions
} search_t;

static int dwarf_functions_add_range(void *context, uint64_t lo, uint64_t hi)
{
    gp_dwarf_unit_t *unit = context;
    return gp_dwarf_ranges_add(&unit->ranges, &(gp_dwarf_range_t){lo, hi, (uint32_t)unit->function_count - 1, 0});
}

static int dwarf_functions_add_function(search_t *search, uint64_t offset, const gp_dwarf_die_t *die)
{
    gp_dwarf_unit_t *unit = search->unit;
    size_t before = unit->ranges.count;
    if (gp_grow(&unit->functions, &unit->function_capacity, unit->function_count, sizeof(*unit->functions)) < 0)
        return -ENOMEM;
    unit->functions[unit->function_count++] = (gp_dwarf_function_t){.die = offset};
    const gp_dwarf_extent_t extent = gp_dwarf_die_extent(die);
    int result = gp_dwarf_ranges(search->dwarf, unit, &extent, dwarf_functions_add_range, unit);
    if (unit->ranges.count == before)
        unit->function_count--;
    return result;
}

typedef enum below { NOTHING, SELDOM, LIKELY } below_t;

// Are there functions with code below such a DIE?
static below_t dwarf_functions_below(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_array_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_call_site:
    case DW_TAG_GNU_call_site:
        return NOTHING;
    case DW_TAG_class_type: // methods are declared there, and defined elsewhere
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram: // GNU C's nested functions
        return SELDOM;
    default:
        return LIKELY;
    }
}

static int dwarf_functions_visit(search_t *search, gp_dwarf_walk_t *walk)
{
    const gp_dwarf_abbrev_t *abbrev = walk->abbrev;
    below_t below = dwarf_functions_below(abbrev->tag);
    bool leave = abbrev->children && abbrev->sibling && (below == NOTHING || (below == SELDOM && !search->everywhere));
    gp_dwarf_die_t die;
    int result = 0;
    if (abbrev->tag != DW_TAG_subprogram && !leave) {
        gp_dwarf_walk_skip(walk);
        return 0;
    }
    gp_dwarf_walk_read(walk, &die);
    if (walk->cursor.bad)
        return 0;
    if (abbrev->tag == DW_TAG_subprogram)
        result = dwarf_functions_add_function(search, walk->die, &die);
    if (leave && gp_dwarf_walk_leave(walk, &die.values[GP_DWARF_SIBLING]))
        search->complete = search->complete && below == NOTHING;
    return result;
}

// As dwarf_functions_visit() does it with those that are not functions with code.
static const uint8_t ways[GP_DWARF_TAGS] = {
    [DW_TAG_array_type] = GP_DWARF_LEAVE,      [DW_TAG_enumeration_type] = GP_DWARF_LEAVE,
    [DW_TAG_subroutine_type] = GP_DWARF_LEAVE, [DW_TAG_call_site] = GP_DWARF_LEAVE,
    [DW_TAG_class_type] = GP_DWARF_SELDOM,     [DW_TAG_structure_type] = GP_DWARF_SELDOM,
    [DW_TAG_union_type] = GP_DWARF_SELDOM,     [DW_TAG_subprogram] = GP_DWARF_CODE,
};
static const uint8_t ways_everywhere[GP_DWARF_TAGS] = {
    [DW_TAG_array_type] = GP_DWARF_LEAVE,      [DW_TAG_enumeration_type] = GP_DWARF_LEAVE,
    [DW_TAG_subroutine_type] = GP_DWARF_LEAVE, [DW_TAG_call_site] = GP_DWARF_LEAVE,
    [DW_TAG_subprogram] = GP_DWARF_STOP,
};

// Returns false at the end.
static bool dwarf_functions_next(search_t *search, gp_dwarf_walk_t *walk)
{
    bool left = false;
    gp_dwarf_walk_past(walk, search->everywhere ? ways_everywhere : ways, true, &left);
    search->complete = search->complete && !left;
    return gp_dwarf_walk_next(walk);
}

int gp_dwarf_functions_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, bool everywhere)
{
    search_t search = {room->dwarf, unit, everywhere, true};
    gp_dwarf_walk_t walk = gp_dwarf_walk(unit, unit->die);
    int result = 0;
    unit->function_count = unit->ranges.count = unit->last_range = 0;
    while (result == 0 && dwarf_functions_next(&search, &walk))
        result = dwarf_functions_visit(&search, &walk);
    unit->searched = everywhere || search.complete;
    if (result == 0)
        result = gp_dwarf_flatten(&unit->ranges);
    gp_buckets_free(&unit->range_buckets);
    gp_buckets_make(&unit->range_buckets, unit->ranges.items, unit->ranges.count, sizeof(*unit->ranges.items));
    return result;
}
