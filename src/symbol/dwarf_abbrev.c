#include <stdlib.h>

#include "symbol/dwarf_unit.h"

static int add_attribute(gp_dwarf_abbrevs_t *table, gp_dwarf_attribute_t attribute)
{
    if (gp_grow(&table->attributes, &table->attribute_capacity, table->attribute_count,
                sizeof(*table->attributes)) < 0)
        return -1;
    table->attributes[table->attribute_count++] = attribute;
    return 0;
}

// One more value is skipped by these steps: more bytes in the last one, or a step of its own.
static int add_step(gp_dwarf_abbrevs_t *table, const gp_dwarf_abbrev_t *abbrev, uint16_t form,
                    uint32_t bytes)
{
    bool last_is_open =
        table->step_count > abbrev->step && table->steps[table->step_count - 1].form == 0;

    if (!last_is_open) {
        if (gp_grow(&table->steps, &table->step_capacity, table->step_count,
                    sizeof(*table->steps)) < 0)
            return -1;
        table->steps[table->step_count++] = (gp_dwarf_step_t){0};
    }
    gp_dwarf_step_t *step = &table->steps[table->step_count - 1];
    if (bytes == UINT32_MAX)
        step->form = form;
    else
        step->bytes += bytes;
    return 0;
}

static int read_attributes(gp_dwarf_abbrevs_t *table, gp_dwarf_abbrev_t *abbrev,
                           const gp_dwarf_unit_t *unit, gp_reader_t *cursor)
{
    abbrev->first = (uint32_t)table->attribute_count;
    abbrev->step = (uint32_t)table->step_count;
    for (;;) {
        uint64_t name = gp_read_uleb(cursor), form = gp_read_uleb(cursor);
        gp_dwarf_attribute_t attribute = {(uint16_t)name, (uint16_t)form, 0};
        if (form == DW_FORM_implicit_const)
            attribute.implicit = gp_read_sleb(cursor);
        if (cursor->bad || name > UINT16_MAX || form > UINT16_MAX)
            return -1;
        if (name == 0 && form == 0)
            break;
        if (add_attribute(table, attribute) < 0 ||
            add_step(table, abbrev, attribute.form, gp_dwarf_form_bytes(attribute.form, unit)) < 0)
            return -1;
        abbrev->sibling |= name == DW_AT_sibling;
    }
    abbrev->count = (uint32_t)table->attribute_count - abbrev->first;
    return add_step(table, abbrev, 0, 0); // the last one
}

static int compare_codes(const void *left, const void *right)
{
    const gp_dwarf_abbrev_t *a = left, *b = right;

    return a->code < b->code ? -1 : a->code > b->code;
}

// What is read before something cannot be read counts.
//   most: so many of them.
static void read_table(gp_dwarf_abbrevs_t *table, const gp_dwarf_unit_t *unit, gp_reader_t cursor,
                       size_t most)
{
    bool sorted = true;

    while (table->count < most) {
        gp_dwarf_abbrev_t abbrev = {.code = gp_read_uleb(&cursor)};
        if (abbrev.code == 0)
            break;
        abbrev.tag = (uint16_t)gp_read_uleb(&cursor);
        abbrev.children = gp_read_u8(&cursor) != 0;
        if (read_attributes(table, &abbrev, unit, &cursor) < 0 ||
            gp_grow(&table->items, &table->capacity, table->count, sizeof(*table->items)) < 0)
            break;
        sorted = sorted && (table->count == 0 || table->items[table->count - 1].code < abbrev.code);
        table->items[table->count++] = abbrev;
    }
    if (!sorted)
        qsort(table->items, table->count, sizeof(*table->items), compare_codes);
}

const gp_dwarf_abbrev_t *gp_dwarf_abbrev(const gp_dwarf_abbrevs_t *table, uint64_t code)
{
    if (code - 1 < table->count && table->items[code - 1].code == code)
        return &table->items[code - 1]; // compilers number them 1, 2, ...
    if (table->count == 0)
        return NULL;
    const gp_dwarf_abbrev_t wanted = {.code = code};
    return bsearch(&wanted, table->items, table->count, sizeof(wanted), compare_codes);
}

static bool same_table(const void *owner, uint32_t number, const void *key)
{
    const gp_dwarf_abbrevs_t *a = ((const gp_dwarf_t *)owner)->abbrevs[number], *b = key;

    return a->offset == b->offset && a->format == b->format;
}

static const gp_dwarf_abbrevs_t *find_table(gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit)
{
    const gp_dwarf_abbrevs_t key = {
        .offset = unit->abbrev_offset,
        .format =
            (uint32_t)unit->version << 16 | (uint32_t)unit->address_bytes << 8 | unit->offset_bytes,
    };
    uint64_t hash = gp_hash_more(gp_hash_u64(key.offset), key.format);
    uint32_t number = gp_index_find(&dwarf->abbrev_index, hash, same_table, dwarf, &key);

    if (number != GP_INDEX_NONE)
        return dwarf->abbrevs[number];
    if (key.offset >= dwarf->sections[GP_DEBUG_ABBREV].len ||
        gp_grow(&dwarf->abbrevs, &dwarf->abbrev_capacity, dwarf->abbrev_count,
                sizeof(gp_dwarf_abbrevs_t *)) < 0)
        return NULL;
    gp_dwarf_abbrevs_t *table = malloc(sizeof(*table));
    if (table == NULL || gp_index_add(&dwarf->abbrev_index, hash, (uint32_t)dwarf->abbrev_count)) {
        free(table);
        return NULL;
    }
    *table = key;
    dwarf->abbrevs[dwarf->abbrev_count++] = table;
    read_table(table, unit, gp_cursor(dwarf->sections[GP_DEBUG_ABBREV], key.offset), SIZE_MAX);
    return table;
}

bool gp_dwarf_abbrevs_load(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    if (unit->abbrevs == NULL)
        unit->abbrevs = find_table(dwarf, unit);
    return unit->abbrevs != NULL;
}

const gp_dwarf_abbrevs_t *gp_dwarf_abbrevs_first(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit,
                                                 uint64_t code)
{
    gp_dwarf_abbrevs_t *table = &dwarf->first_abbrevs;

    if (unit->abbrevs != NULL)
        return unit->abbrevs;
    table->count = table->attribute_count = table->step_count = 0;
    read_table(table, unit, gp_cursor(dwarf->sections[GP_DEBUG_ABBREV], unit->abbrev_offset), 1);
    if (table->count > 0 && table->items[0].code == code)
        return table;
    return gp_dwarf_abbrevs_load(dwarf, unit) ? unit->abbrevs : NULL; // dwz makes one for all units
}

static void clear(gp_dwarf_abbrevs_t *table)
{
    free(table->items);
    free(table->attributes);
    free(table->steps);
}

void gp_dwarf_abbrevs_free(gp_dwarf_t *dwarf)
{
    for (size_t i = 0; i < dwarf->abbrev_count; i++) {
        clear(dwarf->abbrevs[i]);
        free(dwarf->abbrevs[i]);
    }
    clear(&dwarf->first_abbrevs);
    free(dwarf->abbrevs);
    gp_index_free(&dwarf->abbrev_index);
}
