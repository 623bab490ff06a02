// SPDX-License-Identifier: MIT
// Walking through the DIEs of a unit, reading as little of them as possible.
#include "symbol/dwarf_unit.h"

gp_dwarf_walk_t gp_dwarf_walk(const gp_dwarf_unit_t *unit, uint64_t die)
{
    const gp_bytes_t until = {unit->sections[GP_DEBUG_INFO].data, (size_t)unit->end};
    return (gp_dwarf_walk_t){.unit = unit, .cursor = gp_cursor(until, die)};
}

bool gp_dwarf_walk_next(gp_dwarf_walk_t *walk)
{
    const uint8_t *info = walk->unit->sections[GP_DEBUG_INFO].data;
    if (walk->abbrev != NULL && walk->level == 0)
        return false; // the first one had no children
    while (!walk->cursor.bad && gp_cursor_left(&walk->cursor) > 0) {
        walk->die = (uint64_t)(walk->cursor.pos - info);
        uint64_t code = gp_read_uleb(&walk->cursor);
        if (code != 0) {
            walk->abbrev = gp_dwarf_abbrev(walk->unit->abbrevs, code);
            walk->level += walk->abbrev != NULL && walk->abbrev->children;
            return walk->abbrev != NULL;
        }
        if (walk->level <= 1)
            return false;
        walk->level--;
    }
    return false;
}

// Go past a value that is not of a fixed size.
static void dwarf_walk_skip_variable(gp_dwarf_walk_t *walk, uint16_t form)
{
    if (form == DW_FORM_indirect)
        gp_dwarf_value(&walk->cursor, walk->unit, &(gp_dwarf_attribute_t){.form = form});
    else
        gp_dwarf_value_skip(&walk->cursor, walk->unit, form);
}

void gp_dwarf_walk_skip(gp_dwarf_walk_t *walk)
{
    const gp_dwarf_step_t *step = walk->unit->abbrevs->steps + walk->abbrev->step;
    for (;; step++) {
        gp_cursor_skip(&walk->cursor, (uint64_t)step->bytes + step->size);
        if (step->form == 0)
            return;
        if (step->form == DW_FORM_implicit_const)
            step++;
        else if (step->size == 0)
            dwarf_walk_skip_variable(walk, step->form);
    }
}

static gp_dwarf_value_t dwarf_walk_implicit_value(const gp_dwarf_step_t *step)
{
    return (gp_dwarf_value_t){
        .form = step->bytes != UINT32_MAX ? DW_FORM_implicit_const : 0,
        .number = step->bytes,
    };
}

void gp_dwarf_walk_read(gp_dwarf_walk_t *walk, gp_dwarf_die_t *die)
{
    const gp_dwarf_step_t *step = walk->unit->abbrevs->steps + walk->abbrev->step;
    memset(die, 0, sizeof(*die));
    for (;; step++) {
        gp_cursor_skip(&walk->cursor, step->bytes);
        if (step->form == 0)
            return;
        if (step->slot == GP_DWARF_UNWANTED) {
            dwarf_walk_skip_variable(walk, step->form);
            continue;
        }
        gp_dwarf_value_t *value = &die->values[step->slot];
        *value = (gp_dwarf_value_t){.form = step->form};
        if (step->size != 0)
            value->number = gp_read_uint(&walk->cursor, step->size);
        else if (step->form == DW_FORM_implicit_const)
            *value = dwarf_walk_implicit_value(++step);
        else
            *value = gp_dwarf_value(&walk->cursor, walk->unit, &(gp_dwarf_attribute_t){.form = step->form});
    }
}

bool gp_dwarf_walk_leave(gp_dwarf_walk_t *walk, const gp_dwarf_value_t *sibling)
{
    const uint8_t *info = walk->unit->sections[GP_DEBUG_INFO].data;
    uint64_t here = (uint64_t)(walk->cursor.pos - info), there = walk->unit->start + sibling->number;
    bool local = sibling->form == DW_FORM_ref1 || sibling->form == DW_FORM_ref2 || sibling->form == DW_FORM_ref4 ||
                 sibling->form == DW_FORM_ref8 || sibling->form == DW_FORM_ref_udata;
    if (!local || there < here || there > walk->unit->end) // only forwards
        return false;
    walk->cursor.pos = info + there;
    walk->level--;
    return true;
}

// --- past many

// The place behind a value; NULL where it is not known.
static const uint8_t *dwarf_walk_past_value(const gp_dwarf_walk_t *walk, const uint8_t *at, uint16_t form)
{
    gp_cursor_t cursor = {at, walk->cursor.end, form == DW_FORM_indirect};
    if (!cursor.bad)
        gp_dwarf_value_skip(&cursor, walk->unit, form);
    return cursor.bad ? NULL : cursor.pos;
}

// The place behind all values, which begin at `at`, or at DW_AT_sibling with `sibling`; NULL where it is not known.
static inline const uint8_t *dwarf_walk_past_values(const gp_dwarf_walk_t *walk, const uint8_t *at,
                                                    const gp_dwarf_step_t **steps, bool sibling)
{
    const gp_dwarf_step_t *step = *steps;
    for (; at != NULL; step++) {
        size_t left = (size_t)(walk->cursor.end - at);
        if (sibling && step->slot == GP_DWARF_SIBLING) {
            *steps = step;
            return step->bytes <= left ? at + step->bytes : NULL;
        }
        if ((size_t)step->bytes + step->size > left)
            return NULL;
        at += step->bytes + step->size;
        if (step->form == 0)
            return sibling ? NULL : at;
        if (step->form == DW_FORM_implicit_const)
            step++;
        else if (step->size == 0)
            at = dwarf_walk_past_value(walk, at, step->form);
    }
    return NULL;
}

// The place behind the children; NULL where the DIE does not tell.
static const uint8_t *dwarf_walk_past_children(const gp_dwarf_walk_t *walk, const uint8_t *at,
                                               const gp_dwarf_step_t *step)
{
    const uint8_t *unit = walk->unit->sections[GP_DEBUG_INFO].data + walk->unit->start;
    uint32_t there;
    at = dwarf_walk_past_values(walk, at, &step, true);
    if (at == NULL || step->form != DW_FORM_ref4 || walk->cursor.end - at < (ptrdiff_t)sizeof(there))
        return NULL;
    memcpy(&there, at, sizeof(there));
    return there >= (size_t)(at - unit) + sizeof(there) && there <= (size_t)(walk->cursor.end - unit) ? unit + there
                                                                                                      : NULL;
}

void gp_dwarf_walk_past(gp_dwarf_walk_t *walk, const uint8_t ways[GP_DWARF_TAGS], bool into, bool *left)
{
    const gp_dwarf_abbrevs_t *table = walk->unit->abbrevs;
    const uint8_t *pos = walk->cursor.pos, *end = walk->cursor.end;
    if (walk->abbrev == NULL || walk->level == 0 || walk->cursor.bad)
        return;
    while (pos < end && *pos < 0x80 && *pos - 1u < table->count) {
        const gp_dwarf_abbrev_t *abbrev = &table->items[*pos - 1];
        unsigned way = ways[abbrev->tag < GP_DWARF_TAGS ? abbrev->tag : 0];
        bool leave = way != GP_DWARF_PAST && abbrev->children;
        if (abbrev->code != *pos || way == GP_DWARF_STOP || (way == GP_DWARF_CODE && abbrev->placed) ||
            (abbrev->children && !leave && !into))
            break;
        const gp_dwarf_step_t *step = table->steps + abbrev->step;
        const uint8_t *next = pos + 1;
        if (leave)
            next = dwarf_walk_past_children(walk, next, step);
        else if (abbrev->bytes != GP_DWARF_VARIABLE_BYTES && abbrev->bytes <= end - next)
            next += abbrev->bytes; // most of them
        else
            next = dwarf_walk_past_values(walk, next, &step, false);
        if (next == NULL)
            break;
        walk->level += abbrev->children && !leave;
        *left |= leave && way != GP_DWARF_LEAVE;
        pos = next;
    }
    walk->cursor.pos = pos;
}
