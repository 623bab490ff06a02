// A function's name and the place of its declaration: its own attributes, else those of the DIEs it
// refers to (its abstract instance, its declaration in a class), which may be in another unit or in
// the supplementary file of dwz.
#include "symbol/dwarf_unit.h"

enum { HOPS_MAX = 8 };

typedef struct origin {
    gp_dwarf_t *dwarf; // whose .debug_info
    uint64_t die;
} origin_t;

typedef struct description { // of one DIE; forms are 0 where it says nothing
    gp_dwarf_value_t name, linkage_name, file, line, reference;
} description_t;

static void take_attribute(description_t *description, uint16_t name, const gp_dwarf_value_t *value)
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

static bool read_die(const origin_t *origin, const gp_dwarf_unit_t *unit,
                     description_t *description)
{
    const gp_bytes_t until = {origin->dwarf->sections[GP_DEBUG_INFO].data, (size_t)unit->end};
    gp_cursor_t cursor = gp_cursor(until, origin->die);
    const gp_dwarf_abbrev_t *abbrev = gp_dwarf_abbrev(unit->abbrevs, gp_cursor_uleb(&cursor));

    memset(description, 0, sizeof(*description));
    if (abbrev == NULL)
        return false;
    for (uint32_t i = 0; i < abbrev->count && !cursor.bad; i++) {
        const gp_dwarf_attribute_t *attribute = &unit->abbrevs->attributes[abbrev->first + i];
        gp_dwarf_value_t value = gp_dwarf_value(&cursor, unit, attribute);
        take_attribute(description, attribute->name, &value);
    }
    return !cursor.bad;
}

// Returns false when the reference leads nowhere.
static bool follow(origin_t *origin, const gp_dwarf_unit_t *unit, const gp_dwarf_value_t *reference)
{
    switch (reference->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        origin->die = unit->start + reference->number;
        return true;
    case DW_FORM_ref_addr:
        origin->die = reference->number;
        return true;
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
        origin->dwarf = origin->dwarf->supplement;
        origin->die = reference->number;
        return origin->dwarf != NULL;
    default:
        return false;
    }
}

static void complete(gp_dwarf_t *dwarf, gp_dwarf_function_t *function, const origin_t *origin,
                     gp_dwarf_unit_t *unit, const description_t *description)
{
    uint64_t number;

    // The linkage name says more (class, arguments); a plain name is kept only until one comes.
    if (description->linkage_name.form != 0) {
        const char *name = gp_dwarf_value_text(origin->dwarf, unit, &description->linkage_name);
        function->name = name ? name : function->name;
    } else if (function->name == NULL) {
        function->name = gp_dwarf_value_text(origin->dwarf, unit, &description->name);
    }
    if (function->first_line == 0 && gp_dwarf_value_constant(&description->line, &number) &&
        number <= UINT32_MAX)
        function->first_line = (uint32_t)number;
    if (function->first_file == NULL && gp_dwarf_value_constant(&description->file, &number) &&
        gp_dwarf_files_load(origin->dwarf, unit) == 0)
        function->first_file = gp_dwarf_file_name(&dwarf->names, unit, number);
}

void gp_dwarf_function_name(gp_dwarf_t *dwarf, gp_dwarf_function_t *function)
{
    origin_t origin = {dwarf, function->die};
    description_t description;

    function->named = true;
    for (int hops = 0; hops < HOPS_MAX; hops++) {
        gp_dwarf_unit_t *unit = gp_dwarf_unit_at(origin.dwarf, origin.die);
        if (unit == NULL || !read_die(&origin, unit, &description))
            break;
        complete(dwarf, function, &origin, unit, &description);
        if (description.linkage_name.form != 0 && function->first_line != 0 &&
            function->first_file != NULL)
            break;
        if (!follow(&origin, unit, &description.reference))
            break;
    }
}
