// The functions of a unit: which instance of which function is innermost at which address.
#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>

enum { NESTING_MAX = 512 }; // of DIEs

typedef struct walk {
    gp_dwarf_t *dwarf;
    gp_dwarf_unit_t *unit;
    gp_cursor_t cursor;
    uint32_t current;            // what the ranges that are visited belong to
    uint32_t scope[NESTING_MAX]; // the function around the DIEs of each level
    size_t level;
    int error;
} walk_t;

typedef struct die { // what is needed of a DIE
    gp_dwarf_extent_t extent;
    uint64_t call_file, call_line;
    gp_dwarf_value_t sibling;
} die_t;

static int add_range(void *context, uint64_t lo, uint64_t hi)
{
    walk_t *walk = context;
    gp_dwarf_unit_t *unit = walk->unit;

    if (gp_grow(&unit->ranges, &unit->range_capacity, unit->range_count, sizeof(*unit->ranges)) < 0)
        return -ENOMEM;
    unit->ranges[unit->range_count++] =
        (gp_dwarf_range_t){lo, hi, walk->current, unit->functions[walk->current].depth};
    return 0;
}

static void take_attribute(walk_t *walk, const gp_dwarf_attribute_t *attribute, die_t *die)
{
    gp_dwarf_value_t value;

    switch (attribute->name) {
    case DW_AT_low_pc:
        die->extent.low = gp_dwarf_value(&walk->cursor, walk->unit, attribute);
        break;
    case DW_AT_high_pc:
        die->extent.high = gp_dwarf_value(&walk->cursor, walk->unit, attribute);
        break;
    case DW_AT_ranges:
        die->extent.ranges = gp_dwarf_value(&walk->cursor, walk->unit, attribute);
        break;
    case DW_AT_sibling:
        die->sibling = gp_dwarf_value(&walk->cursor, walk->unit, attribute);
        break;
    case DW_AT_call_file:
        value = gp_dwarf_value(&walk->cursor, walk->unit, attribute);
        gp_dwarf_value_constant(&value, &die->call_file);
        break;
    case DW_AT_call_line:
        value = gp_dwarf_value(&walk->cursor, walk->unit, attribute);
        gp_dwarf_value_constant(&value, &die->call_line);
        break;
    default:
        if (attribute->form == DW_FORM_indirect)
            gp_dwarf_value(&walk->cursor, walk->unit, attribute);
        else
            gp_dwarf_value_skip(&walk->cursor, walk->unit, attribute->form);
    }
}

static void read_die(walk_t *walk, const gp_dwarf_abbrev_t *abbrev, die_t *die)
{
    const gp_dwarf_attribute_t *attributes = walk->unit->abbrevs->attributes + abbrev->first;

    for (uint32_t i = 0; i < abbrev->count && !walk->cursor.bad; i++)
        take_attribute(walk, &attributes[i], die);
}

// Returns the number of the function, or the scope it is in where it cannot be one of its own.
static uint32_t add_function(walk_t *walk, uint16_t tag, uint64_t offset, const die_t *die)
{
    gp_dwarf_unit_t *unit = walk->unit;
    uint32_t outer = tag == DW_TAG_inlined_subroutine ? walk->scope[walk->level] : GP_DWARF_NONE;
    uint32_t depth = outer != GP_DWARF_NONE ? unit->functions[outer].depth + 1 : 0;

    if ((tag == DW_TAG_inlined_subroutine && outer == GP_DWARF_NONE) ||
        depth >= GP_DWARF_PLACES_MAX)
        return outer;
    if (gp_grow(&unit->functions, &unit->function_capacity, unit->function_count,
                sizeof(*unit->functions)) < 0) {
        walk->error = -ENOMEM;
        return outer;
    }
    walk->current = (uint32_t)unit->function_count++;
    unit->functions[walk->current] = (gp_dwarf_function_t){
        .die = offset,
        .outer = outer,
        .call_file = die->call_file < GP_DWARF_NONE ? (uint32_t)die->call_file : GP_DWARF_NONE,
        .call_line = die->call_line <= UINT32_MAX ? (uint32_t)die->call_line : 0,
        .depth = depth,
    };
    walk->error = gp_dwarf_ranges(walk->dwarf, unit, &die->extent, add_range, walk);
    return walk->current;
}

// Nothing below such a DIE has code.
static bool may_be_skipped(uint16_t tag)
{
    return tag == DW_TAG_array_type || tag == DW_TAG_enumeration_type ||
           tag == DW_TAG_subroutine_type || tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site;
}

// Go to a DIE's sibling; only forwards. Returns whether it was done.
static bool skip_to(walk_t *walk, const gp_dwarf_value_t *sibling)
{
    const uint8_t *info = walk->dwarf->sections[GP_DEBUG_INFO].data;
    uint64_t here = (uint64_t)(walk->cursor.at - info), there = walk->unit->start + sibling->number;
    bool local = sibling->form == DW_FORM_ref1 || sibling->form == DW_FORM_ref2 ||
                 sibling->form == DW_FORM_ref4 || sibling->form == DW_FORM_ref8 ||
                 sibling->form == DW_FORM_ref_udata;

    if (!local || there < here || there > walk->unit->end)
        return false;
    walk->cursor.at = info + there;
    return true;
}

static void visit_die(walk_t *walk, const gp_dwarf_abbrev_t *abbrev, uint64_t offset)
{
    uint32_t scope = walk->scope[walk->level];
    bool is_function = abbrev->tag == DW_TAG_subprogram || abbrev->tag == DW_TAG_inlined_subroutine;
    bool skip = abbrev->children && abbrev->sibling && may_be_skipped(abbrev->tag);
    die_t die = {.call_file = GP_DWARF_NONE};

    if (is_function || skip || abbrev->bytes == UINT32_MAX)
        read_die(walk, abbrev, &die);
    else
        gp_cursor_skip(&walk->cursor, abbrev->bytes);
    if (walk->cursor.bad || (skip && skip_to(walk, &die.sibling)))
        return;
    if (is_function)
        scope = add_function(walk, abbrev->tag, offset, &die);
    if (!abbrev->children)
        return;
    if (walk->level + 1 == NESTING_MAX)
        gp_cursor_fail(&walk->cursor);
    else
        walk->scope[++walk->level] = scope;
}

static void walk_unit(walk_t *walk)
{
    const uint8_t *info = walk->dwarf->sections[GP_DEBUG_INFO].data;

    walk->scope[0] = GP_DWARF_NONE;
    while (walk->error == 0 && !walk->cursor.bad && gp_cursor_left(&walk->cursor) > 0) {
        uint64_t offset = (uint64_t)(walk->cursor.at - info);
        uint64_t code = gp_cursor_uleb(&walk->cursor);
        const gp_dwarf_abbrev_t *abbrev = code ? gp_dwarf_abbrev(walk->unit->abbrevs, code) : NULL;
        if (abbrev != NULL)
            visit_die(walk, abbrev, offset);
        else if (code != 0)
            break;
        else if (walk->level > 0)
            walk->level--;
    }
}

// By start, then the larger first (it is the outer one), then by nesting.
static int compare_ranges(const void *left, const void *right)
{
    const gp_dwarf_range_t *a = left, *b = right;

    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    if (a->hi != b->hi)
        return a->hi > b->hi ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

typedef struct sweep {
    gp_dwarf_range_t *made; // disjoint
    size_t count, capacity;
    size_t *open; // ranges that hold the position, the innermost last
    size_t depth;
    uint64_t position;
} sweep_t;

static int emit(sweep_t *sweep, uint64_t end, const gp_dwarf_range_t *range)
{
    if (sweep->position >= end)
        return 0;
    if (gp_grow(&sweep->made, &sweep->capacity, sweep->count, sizeof(*sweep->made)) < 0)
        return -ENOMEM;
    sweep->made[sweep->count] = *range;
    sweep->made[sweep->count].lo = sweep->position;
    sweep->made[sweep->count++].hi = end;
    sweep->position = end;
    return 0;
}

// Close what ends at or before `upto`, then cut the innermost one that goes on.
static int advance(sweep_t *sweep, const gp_dwarf_range_t *ranges, uint64_t upto)
{
    int result = 0;

    for (; sweep->depth > 0 && result == 0; sweep->depth--) {
        const gp_dwarf_range_t *top = &ranges[sweep->open[sweep->depth - 1]];
        if (top->hi > upto)
            return emit(sweep, upto, top);
        result = emit(sweep, top->hi, top);
    }
    return result;
}

// Cut nested ranges into disjoint ones.
static int flatten(gp_dwarf_unit_t *unit)
{
    sweep_t sweep = {.open = calloc(unit->range_count + 1, sizeof(size_t))};
    int result = sweep.open ? 0 : -ENOMEM;

    for (size_t i = 0; i < unit->range_count && result == 0; i++) {
        result = advance(&sweep, unit->ranges, unit->ranges[i].lo);
        if (sweep.position < unit->ranges[i].lo)
            sweep.position = unit->ranges[i].lo;
        sweep.open[sweep.depth++] = i;
    }
    if (result == 0)
        result = advance(&sweep, unit->ranges, UINT64_MAX);
    free(sweep.open);
    free(unit->ranges);
    unit->ranges = sweep.made;
    unit->range_count = sweep.count;
    unit->range_capacity = sweep.capacity;
    return result;
}

int gp_dwarf_functions_load(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    walk_t *walk = calloc(1, sizeof(*walk));

    if (walk == NULL)
        return -ENOMEM;
    const gp_bytes_t until = {dwarf->sections[GP_DEBUG_INFO].data, (size_t)unit->end};
    walk->dwarf = dwarf;
    walk->unit = unit;
    walk->cursor = gp_cursor(until, unit->die);
    walk_unit(walk);
    int result = walk->error;
    free(walk);
    if (unit->range_count > 0)
        qsort(unit->ranges, unit->range_count, sizeof(*unit->ranges), compare_ranges);
    return result == 0 ? flatten(unit) : result;
}
