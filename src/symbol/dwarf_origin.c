// SPDX-License-Identifier: MIT
// A function's name and the place of its declaration: its own attributes, else those of the DIEs it refers to (its
// abstract instance, its declaration in a class), which may be in another unit or in the supplementary file of dwz.
#include "symbol/dwarf_unit.h"

enum { HOPS_MAX = 8 };

typedef struct description { // of one DIE; forms are 0 where it says nothing
    gp_dwarf_value_t name, linkage_name, file, line, reference;
} description_t;

static void dwarf_origin_take_attribute(description_t *description, uint16_t name, const gp_dwarf_value_t *value)
{
    switch (name) {
    case DW_AT_name:
        description->name = *value;
        break;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
        description->linkage_name = *value;
        break;
    case DW_AT_decl_file:
        description->file = *value;
        break;
    case DW_AT_decl_line:
        description->line = *value;
        break;
    case DW_AT_abstract_origin:
        description->reference = *value;
        break;
    case DW_AT_specification:
        if (description->reference.form == 0)
            description->reference = *value;
        break;
    default:
        break;
    }
}

static bool dwarf_origin_read_die(const gp_dwarf_unit_t *unit, uint64_t die, description_t *description)
{
    const gp_bytes_t until = {unit->sections[GP_DEBUG_INFO].data, (size_t)unit->end};
    gp_cursor_t cursor = gp_cursor(until, die);
    const gp_dwarf_abbrev_t *abbrev = gp_dwarf_abbrev(unit->abbrevs, gp_read_uleb(&cursor));
    gp_dwarf_attribute_t attribute;
    memset(description, 0, sizeof(*description));
    if (abbrev == NULL)
        return false;
    gp_cursor_t attributes = gp_dwarf_attributes(unit, abbrev);
    while (!cursor.bad && gp_dwarf_attribute_next(&attributes, &attribute)) {
        gp_dwarf_value_t value = gp_dwarf_value(&cursor, unit, &attribute);
        dwarf_origin_take_attribute(description, attribute.name, &value);
    }
    return !cursor.bad;
}

uint64_t gp_dwarf_reference(const gp_dwarf_unit_t *unit, const gp_dwarf_value_t *value)
{
    switch (value->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        return unit->place_base + unit->start + value->number;
    case DW_FORM_ref_addr:
        return unit->place_base + value->number;
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
        return value->number | GP_DWARF_SUPPLEMENT;
    default:
        return GP_DWARF_NO_DIE;
    }
}

static void dwarf_origin_complete(gp_dwarf_t *dwarf, gp_dwarf_title_t *title, gp_dwarf_t *from, gp_dwarf_unit_t *unit,
                                  const description_t *description, bool *linked)
{
    uint64_t number;
    // The first linkage name counts (of a constructor's copies each has its own); it says more than a plain name.
    if (description->linkage_name.form != 0 && !*linked) {
        const char *name = gp_dwarf_value_text(from, unit, &description->linkage_name);
        title->name = name ? name : title->name;
        *linked = name != NULL;
    } else if (title->name == NULL) {
        title->name = gp_dwarf_value_text(from, unit, &description->name);
    }
    if (title->first_line == 0 && gp_dwarf_value_constant(&description->line, &number) && number <= UINT32_MAX)
        title->first_line = (uint32_t)number;
    if (title->first_file == NULL && gp_dwarf_value_constant(&description->file, &number) &&
        gp_dwarf_files_load(from, unit) == 0)
        title->first_file = gp_dwarf_file_name(&dwarf->names, unit, number);
}

// The unit that has the DIE at a place, and the DIE's offset in the unit's .debug_info; NULL = none has.
static gp_dwarf_unit_t *dwarf_origin_unit_at_place(gp_dwarf_t *from, uint64_t place, uint64_t *die)
{
    uint64_t number = (place & ~GP_DWARF_SPLIT) >> GP_DWARF_UNIT_SHIFT;
    bool split = (place & GP_DWARF_SPLIT) != 0;
    gp_dwarf_unit_t *unit =
        split ? number < from->unit_count ? &from->units[number] : NULL : gp_dwarf_unit_at(from, place);
    if (unit == NULL)
        return NULL;
    gp_dwarf_settle(from, unit);
    *die = place - unit->place_base;
    return split == (unit->split != NULL) && *die >= unit->die && *die < unit->end ? unit : NULL;
}

static void dwarf_origin_read_title(gp_dwarf_t *dwarf, gp_dwarf_title_t *title)
{
    gp_dwarf_t *from = dwarf; // the file of the .debug_info
    uint64_t die = title->die;
    description_t description;
    bool linked = false;
    for (int hops = 0; hops < HOPS_MAX && die != GP_DWARF_NO_DIE; hops++) {
        if (die & GP_DWARF_SUPPLEMENT)
            from = from->supplement;
        gp_dwarf_unit_t *unit = from ? dwarf_origin_unit_at_place(from, die & ~GP_DWARF_SUPPLEMENT, &die) : NULL;
        if (unit == NULL || !gp_dwarf_abbrevs_load(&from->room, unit) ||
            !dwarf_origin_read_die(unit, die, &description))
            break;
        dwarf_origin_complete(dwarf, title, from, unit, &description, &linked);
        if (linked && title->first_line != 0 && title->first_file != NULL)
            break;
        die = gp_dwarf_reference(unit, &description.reference);
    }
}

static bool dwarf_origin_same_title(const void *owner, uint32_t number, const void *key)
{
    return ((const gp_dwarf_t *)owner)->titles[number]->die == *(const uint64_t *)key;
}

gp_dwarf_title_t *gp_dwarf_title(gp_dwarf_t *dwarf, uint64_t die)
{
    uint64_t hash = gp_hash_u64(die);
    uint32_t number = gp_index_find(&dwarf->title_index, hash, dwarf_origin_same_title, dwarf, &die);
    if (number != GP_INDEX_NONE)
        return dwarf->titles[number];
    gp_dwarf_title_t *title = gp_arena_alloc(&dwarf->room.memory, sizeof(*title));
    if (title == NULL ||
        gp_grow(&dwarf->titles, &dwarf->title_capacity, dwarf->title_count, sizeof(gp_dwarf_title_t *)) < 0 ||
        gp_index_add(&dwarf->title_index, hash, (uint32_t)dwarf->title_count) < 0)
        return NULL;
    dwarf->titles[dwarf->title_count++] = title;
    title->die = die;
    dwarf_origin_read_title(dwarf, title);
    return title;
}
