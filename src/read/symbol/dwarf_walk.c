// SPDX-License-Identifier: MIT
// Walking through the DIEs of a unit, reading as little of them as possible.
#include "symbol/dwarf_unit.h"

gp_dwarf_walk_t gp_dwarf_walk(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, uint64_t die)
{
    const gp_bytes_t until = {dwarf->sections[GP_DEBUG_INFO].data, (size_t)unit->end};
    return (gp_dwarf_walk_t){.dwarf = dwarf, .unit = unit, .cursor = gp_cursor(until, die)};
}

bool gp_dwarf_walk_next(gp_dwarf_walk_t *walk)
{
    const uint8_t *info = walk->dwarf->sections[GP_DEBUG_INFO].data;
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
static void skip_variable(gp_dwarf_walk_t *walk, uint16_t form)
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
            skip_variable(walk, step->form);
    }
}

static gp_dwarf_value_t implicit_value(const gp_dwarf_step_t *step)
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
            skip_variable(walk, step->form);
            continue;
        }
        gp_dwarf_value_t *value = &die->values[step->slot];
        *value = (gp_dwarf_value_t){.form = step->form};
        if (step->size != 0)
            value->number = gp_read_uint(&walk->cursor, step->size);
        else if (step->form == DW_FORM_implicit_const)
            *value = implicit_value(++step);
        else
            *value = gp_dwarf_value(&walk->cursor, walk->unit, &(gp_dwarf_attribute_t){.form = step->form});
    }
}

bool gp_dwarf_walk_leave(gp_dwarf_walk_t *walk, const gp_dwarf_value_t *sibling)
{
    const uint8_t *info = walk->dwarf->sections[GP_DEBUG_INFO].data;
    uint64_t here = (uint64_t)(walk->cursor.pos - info), there = walk->unit->start + sibling->number;
    bool local = sibling->form == DW_FORM_ref1 || sibling->form == DW_FORM_ref2 || sibling->form == DW_FORM_ref4 ||
                 sibling->form == DW_FORM_ref8 || sibling->form == DW_FORM_ref_udata;
    if (!local || there < here || there > walk->unit->end) // only forwards
        return false;
    walk->cursor.pos = info + there;
    walk->level--;
    return true;
}
