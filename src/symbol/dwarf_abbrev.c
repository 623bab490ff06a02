// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "symbol/dwarf_unit.h"

enum { SCAN_BYTES = 2048 }; // of a table, for the first DIE's abbreviation: most tables are smaller

// Inlined below, where all attributes of all units pass.
static inline bool dwarf_abbrev_next(gp_cursor_t *attributes, gp_dwarf_attribute_t *attribute)
{
    const uint8_t *at = attributes->pos;
    if (!attributes->bad && attributes->end - at >= 2 && at[0] < 0x80 && at[1] < 0x80 &&
        at[1] != DW_FORM_implicit_const) { // most of them
        attributes->pos += 2;
        *attribute = (gp_dwarf_attribute_t){.name = at[0], .form = at[1]};
        return (at[0] | at[1]) != 0;
    }
    uint64_t name = gp_read_uleb(attributes), form = gp_read_uleb(attributes);
    attribute->name = (uint16_t)name;
    attribute->form = (uint16_t)form;
    attribute->implicit = form == DW_FORM_implicit_const ? gp_read_sleb(attributes) : 0;
    if (name > UINT16_MAX || form > UINT16_MAX)
        gp_cursor_fail(attributes);
    return !attributes->bad && (name | form) != 0;
}

bool gp_dwarf_attribute_next(gp_cursor_t *attributes, gp_dwarf_attribute_t *attribute)
{
    return dwarf_abbrev_next(attributes, attribute);
}

typedef struct reading { // of a table
    gp_dwarf_room_t *room;
    const gp_dwarf_unit_t *unit;
    const uint8_t *sizes; // by form
    gp_cursor_t cursor;
    size_t count, step_count;
    bool unsorted; // by code
} reading_t;

enum { SLOTS = 0x80 }; // by the attribute's name; GP_DWARF_UNWANTED for the others

// Where the values of a DIE with this tag go in gp_dwarf_die_t.
static const uint8_t *dwarf_abbrev_slots_of(uint16_t tag)
{
    static const uint8_t of_code[SLOTS] = {
        [DW_AT_sibling] = GP_DWARF_SIBLING,        [DW_AT_low_pc] = GP_DWARF_LOW,
        [DW_AT_high_pc] = GP_DWARF_HIGH,           [DW_AT_ranges] = GP_DWARF_RANGES,
        [DW_AT_abstract_origin] = GP_DWARF_ORIGIN, [DW_AT_call_file] = GP_DWARF_CALL_FILE,
        [DW_AT_call_line] = GP_DWARF_CALL_LINE,
    };
    static const uint8_t of_others[SLOTS] = {[DW_AT_sibling] = GP_DWARF_SIBLING};
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ? of_code : of_others;
}

// Sizes of the values of a unit's forms; OTHER_SIZE where it differs, and where the value is in the abbreviation.
enum { OTHER_SIZE = 0xff };
static const uint8_t *dwarf_abbrev_sizes_of(gp_dwarf_room_t *room, const gp_dwarf_unit_t *unit, uint32_t format)
{
    if (room->sizes_format == format)
        return room->form_sizes;
    room->sizes_format = format;
    for (unsigned form = 0; form < GP_DWARF_FORMS; form++) {
        uint32_t bytes = gp_dwarf_form_bytes((uint16_t)form, unit);
        room->form_sizes[form] =
            bytes == GP_DWARF_VARIABLE || form == DW_FORM_implicit_const ? OTHER_SIZE : (uint8_t)bytes;
    }
    return room->form_sizes;
}

static gp_dwarf_step_t *dwarf_abbrev_next_step(reading_t *reading)
{
    gp_dwarf_room_t *room = reading->room;
    if (gp_grow(&room->steps, &room->step_capacity, reading->step_count, sizeof(*room->steps)) < 0)
        return NULL;
    gp_dwarf_step_t *step = &room->steps[reading->step_count++];
    *step = (gp_dwarf_step_t){0};
    return step;
}

// A step past one more value: more bytes in the last step, or its end. Returns the step that is open then, or NULL.
static gp_dwarf_step_t *dwarf_abbrev_add_value(reading_t *reading, gp_dwarf_step_t *step, const uint8_t slots[SLOTS],
                                               const gp_dwarf_attribute_t *attribute)
{
    uint32_t bytes = gp_dwarf_form_bytes(attribute->form, reading->unit);
    uint8_t slot = attribute->name < SLOTS ? slots[attribute->name] : GP_DWARF_UNWANTED;
    if (slot == GP_DWARF_UNWANTED && bytes != GP_DWARF_VARIABLE) {
        step->bytes += bytes;
        return step;
    }
    step->form = attribute->form;
    step->slot = slot;
    step->size = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 ? (uint8_t)bytes : 0;
    if (attribute->form == DW_FORM_implicit_const) {
        step = dwarf_abbrev_next_step(reading);
        if (step == NULL)
            return NULL;
        step->bytes =
            attribute->implicit >= 0 && attribute->implicit < UINT32_MAX ? (uint32_t)attribute->implicit : UINT32_MAX;
    }
    return dwarf_abbrev_next_step(reading);
}

// Bytes of all values together; implicit constants have none.
static uint16_t dwarf_abbrev_fixed_bytes(const reading_t *reading, const gp_dwarf_abbrev_t *abbrev)
{
    uint64_t bytes = 0;
    for (const gp_dwarf_step_t *step = reading->room->steps + abbrev->step;; step++) {
        bytes += step->bytes + step->size;
        if (step->form == 0)
            return bytes < GP_DWARF_VARIABLE_BYTES ? (uint16_t)bytes : GP_DWARF_VARIABLE_BYTES;
        if (step->form == DW_FORM_implicit_const)
            step++;
        else if (step->size == 0)
            return GP_DWARF_VARIABLE_BYTES;
    }
}

// Go past attributes of a fixed size that are not needed, as most are not. Returns the bytes of their values in
// all.
static inline uint32_t dwarf_abbrev_past_fixed(reading_t *reading, const uint8_t slots[SLOTS])
{
    const uint8_t *at = reading->cursor.pos;
    uint32_t bytes = 0;
    for (; reading->cursor.end - at >= 2; at += 2) {
        unsigned name = at[0], form = at[1];
        if (name >= SLOTS || form >= GP_DWARF_FORMS || slots[name] != GP_DWARF_UNWANTED ||
            reading->sizes[form] == OTHER_SIZE)
            break;
        bytes += reading->sizes[form];
    }
    reading->cursor.pos = at;
    return bytes;
}

static bool dwarf_abbrev_read_attributes(reading_t *reading, gp_dwarf_abbrev_t *abbrev)
{
    const uint8_t *slots = dwarf_abbrev_slots_of(abbrev->tag);
    gp_dwarf_attribute_t attribute;
    abbrev->step = (uint32_t)reading->step_count;
    gp_dwarf_step_t *step = dwarf_abbrev_next_step(reading);
    for (;;) {
        if (step != NULL)
            step->bytes += dwarf_abbrev_past_fixed(reading, slots);
        if (step == NULL || !dwarf_abbrev_next(&reading->cursor, &attribute))
            break;
        abbrev->sibling |= attribute.name == DW_AT_sibling;
        abbrev->placed |= attribute.name == DW_AT_low_pc || attribute.name == DW_AT_ranges;
        step = dwarf_abbrev_add_value(reading, step, slots, &attribute);
    }
    if (step != NULL)
        abbrev->bytes = dwarf_abbrev_fixed_bytes(reading, abbrev);
    return step != NULL && !reading->cursor.bad;
}

static int dwarf_abbrev_compare_codes(const void *left, const void *right)
{
    const gp_dwarf_abbrev_t *a = left, *b = right;
    return a->code < b->code ? -1 : a->code > b->code;
}

// Copy what was read to where it stays.
static void dwarf_abbrev_keep(const reading_t *reading, gp_dwarf_abbrevs_t *table)
{
    gp_dwarf_room_t *room = reading->room;
    table->items = gp_arena_copy(&room->memory, room->abbrev_items, reading->count * sizeof(*table->items));
    table->steps = gp_arena_copy(&room->memory, room->steps, reading->step_count * sizeof(*table->steps));
    table->count = table->items != NULL && table->steps != NULL ? reading->count : 0;
}

// Read a table up to its end, or to the first entry that cannot be read. Returns where the read part ends.
static uint64_t dwarf_abbrev_read_table(gp_dwarf_room_t *room, const gp_dwarf_unit_t *unit, gp_dwarf_abbrevs_t *table)
{
    reading_t reading = {.room = room, .unit = unit, .sizes = dwarf_abbrev_sizes_of(room, unit, table->format)};
    reading.cursor = gp_cursor(table->sections[GP_DEBUG_ABBREV], table->offset);
    const uint8_t *start = reading.cursor.pos;
    for (;;) {
        gp_dwarf_abbrev_t abbrev = {.code = gp_read_uleb(&reading.cursor)};
        if (abbrev.code == 0)
            break;
        abbrev.tag = (uint16_t)gp_read_uleb(&reading.cursor);
        abbrev.children = gp_read_u8(&reading.cursor) != 0;
        uint64_t at = (uint64_t)(reading.cursor.pos - start);
        if (at > UINT32_MAX || !dwarf_abbrev_read_attributes(&reading, &abbrev) ||
            gp_grow(&room->abbrev_items, &room->abbrev_item_capacity, reading.count, sizeof(*room->abbrev_items)) < 0)
            break;
        abbrev.attributes = (uint32_t)at;
        reading.unsorted |= reading.count > 0 && abbrev.code < room->abbrev_items[reading.count - 1].code;
        room->abbrev_items[reading.count++] = abbrev;
    }
    if (reading.unsorted)
        gp_sort(room->abbrev_items, reading.count, sizeof(*room->abbrev_items), dwarf_abbrev_compare_codes);
    dwarf_abbrev_keep(&reading, table);
    return table->offset + (uint64_t)(reading.cursor.pos - start);
}

const gp_dwarf_abbrev_t *gp_dwarf_abbrev_search(const gp_dwarf_abbrevs_t *table, uint64_t code)
{
    const gp_dwarf_abbrev_t wanted = {.code = code};
    if (table->count == 0)
        return NULL;
    return bsearch(&wanted, table->items, table->count, sizeof(wanted), dwarf_abbrev_compare_codes);
}

static bool dwarf_abbrev_same_table(const void *owner, uint32_t number, const void *key)
{
    const gp_dwarf_abbrevs_t *a = ((const gp_dwarf_room_t *)owner)->abbrevs[number], *b = key;
    return a->sections == b->sections && a->offset == b->offset && a->format == b->format;
}

// The properties of a unit that sizes of values depend on.
static uint32_t dwarf_abbrev_format_of(const gp_dwarf_unit_t *unit)
{
    return (uint32_t)(unit->version <= 2) << 16 | (uint32_t)unit->address_bytes << 8 | unit->offset_bytes;
}

bool gp_dwarf_abbrevs_read(gp_dwarf_t *dwarf, gp_dwarf_room_t *room, uint64_t *offset)
{
    static const gp_dwarf_unit_t usual = {.version = 5, .address_bytes = 8, .offset_bytes = 4};
    gp_dwarf_abbrevs_t table = {dwarf->sections, .offset = *offset, .format = dwarf_abbrev_format_of(&usual)};
    if (*offset >= dwarf->sections[GP_DEBUG_ABBREV].len ||
        gp_grow(&dwarf->abbrevs, &dwarf->abbrev_capacity, dwarf->abbrev_count, sizeof(*dwarf->abbrevs)) < 0)
        return false;
    *offset = dwarf_abbrev_read_table(room, &usual, &table);
    if (table.count > 0)
        dwarf->abbrevs[dwarf->abbrev_count++] = table;
    return true;
}

static int dwarf_abbrev_compare_offset(const void *key, const void *element)
{
    const gp_dwarf_abbrevs_t *a = key, *b = element;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

// A table that was read before any unit was; NULL = none.
static const gp_dwarf_abbrevs_t *dwarf_abbrev_find_read(const gp_dwarf_t *dwarf, const gp_dwarf_abbrevs_t *key)
{
    const gp_dwarf_abbrevs_t *table = NULL;
    if (key->sections == dwarf->sections && dwarf->has_tables && dwarf->abbrev_count > 0)
        table = bsearch(key, dwarf->abbrevs, dwarf->abbrev_count, sizeof(*dwarf->abbrevs), dwarf_abbrev_compare_offset);
    return table != NULL && table->format == key->format ? table : NULL;
}

static const gp_dwarf_abbrevs_t *dwarf_abbrev_find_table(gp_dwarf_room_t *room, const gp_dwarf_unit_t *unit)
{
    const gp_dwarf_abbrevs_t key = {unit->sections, .offset = unit->abbrev_offset,
                                    .format = dwarf_abbrev_format_of(unit)};
    const gp_dwarf_abbrevs_t *read = dwarf_abbrev_find_read(room->dwarf, &key);
    if (read != NULL)
        return read;
    uint64_t hash = gp_hash_more(gp_hash_u64(key.offset + (uintptr_t)key.sections), key.format);
    uint32_t number = gp_index_find(&room->abbrev_index, hash, dwarf_abbrev_same_table, room, &key);
    if (number != GP_INDEX_NONE)
        return room->abbrevs[number];
    if (key.offset >= key.sections[GP_DEBUG_ABBREV].len ||
        gp_grow(&room->abbrevs, &room->abbrev_capacity, room->abbrev_count, sizeof(gp_dwarf_abbrevs_t *)) < 0)
        return NULL;
    gp_dwarf_abbrevs_t *table = gp_arena_alloc(&room->memory, sizeof(*table));
    if (table == NULL || gp_index_add(&room->abbrev_index, hash, (uint32_t)room->abbrev_count))
        return NULL;
    *table = key;
    room->abbrevs[room->abbrev_count++] = table;
    dwarf_abbrev_read_table(room, unit, table);
    return table;
}

bool gp_dwarf_abbrevs_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    if (unit->abbrevs == NULL)
        unit->abbrevs = dwarf_abbrev_find_table(room, unit);
    return unit->abbrevs != NULL;
}

gp_cursor_t gp_dwarf_attributes(const gp_dwarf_unit_t *unit, const gp_dwarf_abbrev_t *abbrev)
{
    return gp_cursor(unit->sections[GP_DEBUG_ABBREV], unit->abbrev_offset + abbrev->attributes);
}

bool gp_dwarf_attributes_find(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, uint64_t code, gp_cursor_t *attributes)
{
    gp_cursor_t cursor = gp_cursor(unit->sections[GP_DEBUG_ABBREV], unit->abbrev_offset);
    const uint8_t *start = cursor.pos;
    gp_dwarf_attribute_t attribute;
    while (unit->abbrevs == NULL && !cursor.bad && cursor.pos - start < SCAN_BYTES) {
        uint64_t found = gp_read_uleb(&cursor);
        gp_read_uleb(&cursor); // tag
        gp_read_u8(&cursor);   // has it children?
        *attributes = cursor;
        if (found == 0 || found == code)
            return found != 0 && !cursor.bad;
        while (dwarf_abbrev_next(&cursor, &attribute))
            ;
    }
    const gp_dwarf_abbrev_t *abbrev = gp_dwarf_abbrevs_load(room, unit) ? gp_dwarf_abbrev(unit->abbrevs, code) : NULL;
    if (abbrev != NULL)
        *attributes = gp_dwarf_attributes(unit, abbrev);
    return abbrev != NULL;
}

void gp_dwarf_abbrevs_free(gp_dwarf_room_t *room)
{
    free(room->abbrevs);
    free(room->abbrev_items);
    free(room->steps);
    gp_index_free(&room->abbrev_index);
}
