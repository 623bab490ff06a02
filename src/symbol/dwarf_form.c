// SPDX-License-Identifier: MIT
#include "symbol/dwarf_unit.h"

// Instead of a size: it depends on the value, or on the unit; REFERENCE: to anywhere.
enum { VARIABLE = 0, NOTHING = GP_DWARF_SIZE_MAX + 1, ADDRESS, OFFSET, REFERENCE };

const uint8_t gp_dwarf_form_sizes[GP_DWARF_FORMS] = {
    [DW_FORM_flag_present] = NOTHING,
    [DW_FORM_implicit_const] = NOTHING,
    [DW_FORM_data1] = 1,
    [DW_FORM_flag] = 1,
    [DW_FORM_ref1] = 1,
    [DW_FORM_strx1] = 1,
    [DW_FORM_addrx1] = 1,
    [DW_FORM_data2] = 2,
    [DW_FORM_ref2] = 2,
    [DW_FORM_strx2] = 2,
    [DW_FORM_addrx2] = 2,
    [DW_FORM_strx3] = 3,
    [DW_FORM_addrx3] = 3,
    [DW_FORM_data4] = 4,
    [DW_FORM_ref4] = 4,
    [DW_FORM_ref_sup4] = 4,
    [DW_FORM_strx4] = 4,
    [DW_FORM_addrx4] = 4,
    [DW_FORM_data8] = 8,
    [DW_FORM_ref8] = 8,
    [DW_FORM_ref_sig8] = 8,
    [DW_FORM_ref_sup8] = 8,
    [DW_FORM_data16] = 16,
    [DW_FORM_addr] = ADDRESS,
    [DW_FORM_ref_addr] = REFERENCE,
    [DW_FORM_strp] = OFFSET,
    [DW_FORM_strp_sup] = OFFSET,
    [DW_FORM_line_strp] = OFFSET,
    [DW_FORM_sec_offset] = OFFSET,
};

uint32_t gp_dwarf_form_other_bytes(uint16_t form, const gp_dwarf_unit_t *unit)
{
    switch (form < GP_DWARF_FORMS ? gp_dwarf_form_sizes[form] : VARIABLE) {
    case VARIABLE:
        return form == DW_FORM_GNU_ref_alt || form == DW_FORM_GNU_strp_alt ? unit->offset_bytes : GP_DWARF_VARIABLE;
    case NOTHING:
        return 0;
    case ADDRESS:
        return unit->address_bytes;
    case OFFSET:
        return unit->offset_bytes;
    default: // REFERENCE: the size of an address in DWARF 2
        return unit->version <= 2 ? unit->address_bytes : unit->offset_bytes;
    }
}

void gp_dwarf_value_skip(gp_cursor_t *cursor, const gp_dwarf_unit_t *unit, uint16_t form)
{
    uint32_t bytes = gp_dwarf_form_bytes(form, unit);
    if (bytes != GP_DWARF_VARIABLE) {
        gp_cursor_skip(cursor, bytes);
        return;
    }
    switch (form) {
    case DW_FORM_string:
        gp_cursor_text(cursor);
        break;
    case DW_FORM_block1:
        gp_cursor_skip(cursor, gp_read_u8(cursor));
        break;
    case DW_FORM_block2:
        gp_cursor_skip(cursor, gp_cursor_u16(cursor));
        break;
    case DW_FORM_block4:
        gp_cursor_skip(cursor, gp_cursor_u32(cursor));
        break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        gp_cursor_skip(cursor, gp_read_uleb(cursor));
        break;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        gp_read_uleb(cursor);
        break;
    default:
        gp_cursor_fail(cursor);
    }
}

// DW_FORM_indirect: the form comes with the value. A form that names itself would never end.
static uint16_t dwarf_form_real_form(gp_cursor_t *cursor, uint16_t form)
{
    uint64_t named = form == DW_FORM_indirect ? gp_read_uleb(cursor) : form;
    if (named == DW_FORM_implicit_const && form == DW_FORM_indirect)
        return 0;
    return named <= UINT16_MAX ? (uint16_t)named : 0;
}

gp_dwarf_value_t gp_dwarf_value(gp_cursor_t *cursor, const gp_dwarf_unit_t *unit, const gp_dwarf_attribute_t *attribute)
{
    gp_dwarf_value_t value = {.form = dwarf_form_real_form(cursor, attribute->form)};
    uint32_t bytes = gp_dwarf_form_bytes(value.form, unit);
    switch (value.form) {
    case DW_FORM_implicit_const:
        value.number = (uint64_t)attribute->implicit;
        break;
    case DW_FORM_string:
        value.text = gp_cursor_text(cursor);
        break;
    case DW_FORM_sdata:
        value.number = (uint64_t)gp_read_sleb(cursor);
        break;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        value.number = gp_read_uleb(cursor);
        break;
    default:
        if (bytes <= 8)
            value.number = gp_read_uint(cursor, bytes);
        else
            gp_dwarf_value_skip(cursor, unit, value.form);
    }
    return value;
}

bool gp_dwarf_indexed_address(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, uint64_t index, uint64_t *address)
{
    gp_bytes_t table = dwarf->sections[GP_DEBUG_ADDR];
    if (index >= table.len) // before it is multiplied
        return false;
    gp_cursor_t cursor = gp_cursor(table, unit->addr_base);
    gp_cursor_skip(&cursor, index * unit->address_bytes);
    *address = gp_read_uint(&cursor, unit->address_bytes);
    return !cursor.bad;
}

bool gp_dwarf_value_address(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, const gp_dwarf_value_t *value,
                            uint64_t *address)
{
    switch (value->form) {
    case DW_FORM_addr:
        *address = value->number;
        return true;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
        return gp_dwarf_indexed_address(dwarf, unit, value->number, address);
    default:
        return false;
    }
}

bool gp_dwarf_value_constant(const gp_dwarf_value_t *value, uint64_t *number)
{
    switch (value->form) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_implicit_const:
    case DW_FORM_sec_offset:
        *number = value->number;
        return true;
    default:
        return false;
    }
}

static const char *dwarf_form_text_at(gp_bytes_t section, uint64_t offset)
{
    return offset < section.len ? (const char *)section.data + offset : NULL;
}

static const char *dwarf_form_indexed_text(const gp_dwarf_unit_t *unit, uint64_t index)
{
    gp_bytes_t offsets = unit->sections[GP_DEBUG_STR_OFFSETS];
    if (index >= offsets.len)
        return NULL;
    gp_cursor_t cursor = gp_cursor(offsets, unit->str_offsets_base);
    gp_cursor_skip(&cursor, index * unit->offset_bytes);
    uint64_t offset = gp_read_uint(&cursor, unit->offset_bytes);
    return cursor.bad ? NULL : dwarf_form_text_at(unit->sections[GP_DEBUG_STR], offset);
}

const char *gp_dwarf_value_text(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, const gp_dwarf_value_t *value)
{
    switch (value->form) {
    case DW_FORM_string:
        return value->text;
    case DW_FORM_strp:
        return dwarf_form_text_at(unit->sections[GP_DEBUG_STR], value->number);
    case DW_FORM_line_strp:
        return dwarf_form_text_at(dwarf->sections[GP_DEBUG_LINE_STR], value->number);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        return dwarf_form_indexed_text(unit, value->number);
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
        return dwarf->supplement ? dwarf_form_text_at(dwarf->supplement->sections[GP_DEBUG_STR], value->number) : NULL;
    default:
        return NULL;
    }
}
