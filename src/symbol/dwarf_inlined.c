// SPDX-License-Identifier: MIT
// Inlined functions: the innermost instance at each address of a function.
#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>

enum { NESTING_MAX = 512 }; // of DIEs

typedef struct reading {
    gp_dwarf_room_t *room;
    const gp_dwarf_unit_t *unit;
    uint32_t count;              // of instances
    uint32_t scope[NESTING_MAX]; // the instance around the DIEs of each level
} reading_t;

static int dwarf_inlined_add_range(void *context, uint64_t lo, uint64_t hi)
{
    reading_t *reading = context;
    uint32_t number = reading->count - 1;
    return gp_dwarf_ranges_add(&reading->room->ranges,
                               &(gp_dwarf_range_t){lo, hi, number, reading->room->instances[number].depth});
}

static uint32_t dwarf_inlined_number_of(const gp_dwarf_value_t *value, uint32_t otherwise)
{
    uint64_t number;
    return gp_dwarf_value_constant(value, &number) && number < GP_DWARF_NONE ? (uint32_t)number : otherwise;
}

static int dwarf_inlined_add_instance(reading_t *reading, uint64_t offset, const gp_dwarf_die_t *die, uint32_t outer)
{
    gp_dwarf_room_t *room = reading->room;
    uint64_t origin = GP_DWARF_NO_DIE;
    if (gp_grow(&room->instances, &room->instance_capacity, reading->count, sizeof(*room->instances)) < 0)
        return -ENOMEM;
    if (outer != GP_DWARF_NONE) // its own DIE says nothing but this
        origin = gp_dwarf_reference(reading->unit, &die->values[GP_DWARF_ORIGIN]);
    room->instances[reading->count++] = (gp_dwarf_instance_t){
        .die = origin != GP_DWARF_NO_DIE ? origin : offset + reading->unit->place_base,
        .outer = outer,
        .call_file = dwarf_inlined_number_of(&die->values[GP_DWARF_CALL_FILE], GP_DWARF_NONE),
        .call_line = dwarf_inlined_number_of(&die->values[GP_DWARF_CALL_LINE], 0),
        .depth = outer != GP_DWARF_NONE ? room->instances[outer].depth + 1 : 0,
    };
    const gp_dwarf_extent_t extent = gp_dwarf_die_extent(die);
    return gp_dwarf_ranges(room->dwarf, reading->unit, &extent, dwarf_inlined_add_range, reading);
}

// Nothing that is inlined here is below such a DIE.
static bool dwarf_inlined_may_be_left(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_array_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_call_site:
    case DW_TAG_GNU_call_site:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram: // another function
        return true;
    default:
        return false;
    }
}

static int dwarf_inlined_visit(reading_t *reading, gp_dwarf_walk_t *walk)
{
    const gp_dwarf_abbrev_t *abbrev = walk->abbrev;
    size_t level = walk->level - abbrev->children;
    bool first = level == 0, inlined = abbrev->tag == DW_TAG_inlined_subroutine;
    uint32_t scope = first ? GP_DWARF_NONE : reading->scope[level];
    bool leave = !first && abbrev->children && abbrev->sibling && dwarf_inlined_may_be_left(abbrev->tag);
    gp_dwarf_die_t die;
    int result = 0;
    if (!first && !inlined && !leave) {
        gp_dwarf_walk_skip(walk);
    } else {
        gp_dwarf_walk_read(walk, &die);
        if (walk->cursor.bad || (leave && gp_dwarf_walk_leave(walk, &die.values[GP_DWARF_SIBLING])))
            return 0;
    }
    if (first ||
        (inlined && scope != GP_DWARF_NONE && reading->room->instances[scope].depth + 1 < GP_DWARF_PLACES_MAX)) {
        result = dwarf_inlined_add_instance(reading, walk->die, &die, scope);
        scope = reading->count - 1;
    } else if (abbrev->tag == DW_TAG_subprogram) {
        scope = GP_DWARF_NONE;
    }
    if (walk->level == NESTING_MAX)
        gp_cursor_fail(&walk->cursor);
    else if (abbrev->children)
        reading->scope[walk->level] = scope;
    return result;
}

// As dwarf_inlined_visit() does it with those that have no children of interest.
static const uint8_t ways[GP_DWARF_TAGS] = {
    [DW_TAG_array_type] = GP_DWARF_LEAVE,        [DW_TAG_enumeration_type] = GP_DWARF_LEAVE,
    [DW_TAG_subroutine_type] = GP_DWARF_LEAVE,   [DW_TAG_call_site] = GP_DWARF_LEAVE,
    [DW_TAG_class_type] = GP_DWARF_LEAVE,        [DW_TAG_structure_type] = GP_DWARF_LEAVE,
    [DW_TAG_union_type] = GP_DWARF_LEAVE,        [DW_TAG_subprogram] = GP_DWARF_STOP,
    [DW_TAG_inlined_subroutine] = GP_DWARF_STOP,
};

// Returns false at the end.
static bool dwarf_inlined_next(gp_dwarf_walk_t *walk)
{
    bool left = false; // has no inlined functions
    gp_dwarf_walk_past(walk, ways, false, &left);
    return gp_dwarf_walk_next(walk);
}

// Copy what was read to where it stays.
static int dwarf_inlined_keep(gp_dwarf_room_t *room, gp_dwarf_function_t *function, size_t instances)
{
    gp_dwarf_ranges_t *ranges = &room->ranges;
    function->instances = gp_arena_copy(&room->memory, room->instances, instances * sizeof(*room->instances));
    function->ranges.items = gp_arena_copy(&room->memory, ranges->items, ranges->count * sizeof(*ranges->items));
    if (function->instances == NULL || function->ranges.items == NULL)
        return -ENOMEM;
    function->ranges.count = ranges->count;
    return 0;
}

int gp_dwarf_inlined_load(gp_dwarf_room_t *room, const gp_dwarf_unit_t *unit, gp_dwarf_function_t *function)
{
    reading_t reading;
    gp_dwarf_walk_t walk = gp_dwarf_walk(unit, function->die);
    int result = 0;
    reading.room = room;
    reading.unit = unit;
    reading.count = 0; // the scopes are set as they are entered
    function->loaded = true;
    room->ranges.count = 0;
    while (result == 0 && dwarf_inlined_next(&walk))
        result = dwarf_inlined_visit(&reading, &walk);
    if (result == 0)
        result = gp_dwarf_flatten(&room->ranges);
    return result == 0 ? dwarf_inlined_keep(room, function, reading.count) : result;
}
