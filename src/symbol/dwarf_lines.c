// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "symbol/dwarf_unit.h"

bool gp_dwarf_line_header(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, gp_dwarf_line_header_t *header)
{
    gp_dwarf_unit_t *format = &header->format;
    uint64_t offset;
    memset(header, 0, sizeof(*header));
    if (!gp_dwarf_value_constant(&unit->line_table, &offset))
        return false;
    gp_cursor_t all = gp_cursor(dwarf->sections[GP_DEBUG_LINE], offset);
    uint64_t length = gp_cursor_u32(&all);
    format->offset_bytes = length == UINT32_MAX ? 8 : 4;
    if (length == UINT32_MAX)
        length = gp_read_uint(&all, 8);
    if (all.bad || length > gp_cursor_left(&all))
        return false;
    gp_cursor_t body = {all.pos, all.pos + length, false};
    *format = (gp_dwarf_unit_t){
        .sections = dwarf->sections,
        .version = gp_cursor_u16(&body),
        .address_bytes = unit->address_bytes,
        .offset_bytes = format->offset_bytes,
        .str_offsets_base = unit->str_offsets_base,
    };
    if (format->version >= 5) {
        format->address_bytes = gp_read_u8(&body);
        gp_cursor_skip(&body, 1); // size of a segment selector
    }
    uint64_t tables_len = gp_read_uint(&body, format->offset_bytes);
    header->program = body;
    gp_cursor_skip(&header->program, tables_len);
    header->instruction_bytes = gp_read_u8(&body);
    if (format->version >= 4)
        gp_cursor_skip(&body, 1); // operations in an instruction: 1 but for VLIW
    gp_cursor_skip(&body, 1);     // is_stmt at the start
    header->line_base = (int8_t)gp_read_u8(&body);
    header->line_range = gp_read_u8(&body);
    header->opcode_base = gp_read_u8(&body);
    for (unsigned i = 1; i < header->opcode_base; i++)
        header->operands[i] = gp_read_u8(&body);
    header->tables = body;
    return !body.bad && !header->program.bad && format->version >= 2 && format->version <= 5 &&
           header->line_range > 0 && header->opcode_base > 0;
}

typedef struct sequence { // rows of ascending addresses, the last one ends it
    uint64_t lo;
    size_t first, count;
} sequence_t;

static bool dwarf_lines_is_end(const gp_dwarf_line_t *row)
{
    return row->file == GP_DWARF_NONE && row->line == 0;
}

static int dwarf_lines_compare_sequences(const void *left, const void *right)
{
    const sequence_t *a = left, *b = right;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    return a->first < b->first ? -1 : 1;
}

static sequence_t *dwarf_lines_find_sequences(const gp_dwarf_line_t *rows, size_t row_count, size_t *count)
{
    sequence_t *sequences = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t first = 0, i = 0; i < row_count; i++) {
        if (!dwarf_lines_is_end(&rows[i]) && i + 1 < row_count)
            continue;
        if (gp_grow(&sequences, &capacity, *count, sizeof(*sequences)) < 0) {
            free(sequences);
            return NULL;
        }
        sequences[(*count)++] = (sequence_t){rows[first].address, first, i + 1 - first};
        first = i + 1;
    }
    return sequences;
}

// Put the sequences in order, into `sorted`. Where one runs into the next, or is not in order
// itself, as no compiler writes it, its rows count up to there. Returns how many there are.
static size_t dwarf_lines_merge(gp_dwarf_line_t *sorted, const gp_dwarf_line_t *rows, const sequence_t *sequences,
                                size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t next = i + 1 < count ? sequences[i + 1].lo : UINT64_MAX;
        for (size_t k = 0; k < sequences[i].count; k++) {
            gp_dwarf_line_t row = rows[sequences[i].first + k];
            if (row.address > next || (kept > 0 && row.address < sorted[kept - 1].address))
                continue;
            if (kept > 0 && row.address == sorted[kept - 1].address)
                kept--; // of several rows at one address the last one counts
            sorted[kept++] = row;
        }
    }
    return kept;
}

// Does one run into the next?
static bool dwarf_lines_overlap(const gp_dwarf_line_t *rows, const sequence_t *sequences, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (rows[sequences[i - 1].first + sequences[i - 1].count - 1].address > sequences[i].lo)
            return true;
    return false;
}

// Copy the rows to where they stay.
//   all: there are; else -EAGAIN is returned where they are needed for that.
static int dwarf_lines_keep_rows(gp_dwarf_room_t *room, const gp_dwarf_rows_t *made, bool all, gp_dwarf_unit_t *unit)
{
    size_t bytes = made->count * sizeof(*unit->lines), count = 0;
    if (made->sorted) {
        unit->lines = gp_arena_copy(&room->memory, room->rows, bytes);
        unit->line_count = unit->lines ? made->count : 0;
        return unit->lines ? 0 : -ENOMEM;
    }
    sequence_t *sequences = dwarf_lines_find_sequences(room->rows, made->count, &count);
    int result = sequences != NULL ? 0 : -ENOMEM;
    gp_sort(sequences, count, sizeof(*sequences), dwarf_lines_compare_sequences);
    if (!all && dwarf_lines_overlap(room->rows, sequences, count))
        result = -EAGAIN;
    unit->lines = result == 0 ? gp_arena_alloc(&room->memory, bytes) : NULL;
    if (unit->lines != NULL)
        unit->line_count = dwarf_lines_merge(unit->lines, room->rows, sequences, count);
    else if (result == 0)
        result = -ENOMEM;
    free(sequences);
    return result;
}

static int dwarf_lines_run_and_keep(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_line_header_t *header,
                                    const gp_dwarf_wanted_t *wanted)
{
    gp_dwarf_rows_t made;
    int result = gp_dwarf_line_program(room, header, wanted, &made);
    return result < 0 || made.count == 0 ? result : dwarf_lines_keep_rows(room, &made, wanted == NULL, unit);
}

static int dwarf_lines_read_rows(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted)
{
    gp_dwarf_line_header_t header;
    if (!gp_dwarf_line_header(room->dwarf, unit, &header))
        return 0;
    int result = wanted->count > 0 ? dwarf_lines_run_and_keep(room, unit, &header, wanted) : -EAGAIN;
    return result == -EAGAIN ? dwarf_lines_run_and_keep(room, unit, &header, NULL) : result;
}

bool gp_dwarf_line_table_read(gp_dwarf_t *dwarf, gp_dwarf_room_t *room, const gp_dwarf_wanted_t *wanted,
                              uint64_t *offset)
{
    gp_cursor_t cursor = gp_cursor(dwarf->sections[GP_DEBUG_LINE], *offset);
    uint64_t length = gp_cursor_u32(&cursor);
    if (length == UINT32_MAX)
        length = gp_read_uint(&cursor, 8);
    gp_cursor_skip(&cursor, length);
    // Rows depend on no unit.
    gp_dwarf_unit_t unit = {.line_table = {.form = DW_FORM_sec_offset, .number = *offset}};
    if (cursor.bad ||
        gp_grow(&dwarf->line_tables, &dwarf->line_table_capacity, dwarf->line_table_count,
                sizeof(*dwarf->line_tables)) < 0 ||
        dwarf_lines_read_rows(room, &unit, wanted) < 0)
        return false;
    dwarf->line_tables[dwarf->line_table_count++] = (gp_dwarf_line_table_t){*offset, unit.lines, unit.line_count};
    *offset = (uint64_t)(cursor.pos - dwarf->sections[GP_DEBUG_LINE].data);
    return true;
}

static int dwarf_lines_compare_offset(const void *key, const void *element)
{
    const uint64_t *offset = key;
    const gp_dwarf_line_table_t *table = element;
    return *offset < table->offset ? -1 : *offset > table->offset;
}

// A table that was read already; NULL = it was not.
static const gp_dwarf_line_table_t *dwarf_lines_find_table(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit)
{
    uint64_t offset;
    if (dwarf->line_table_count == 0 || !gp_dwarf_value_constant(&unit->line_table, &offset))
        return NULL;
    return bsearch(&offset, dwarf->line_tables, dwarf->line_table_count, sizeof(*dwarf->line_tables),
                   dwarf_lines_compare_offset);
}

int gp_dwarf_lines_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted)
{
    const gp_dwarf_line_table_t *table = dwarf_lines_find_table(room->dwarf, unit);
    int result = 0;
    if (table != NULL) {
        unit->lines = table->lines;
        unit->line_count = table->count;
    } else {
        result = dwarf_lines_read_rows(room, unit, wanted);
    }
    gp_buckets_make(&unit->line_buckets, unit->lines, unit->line_count, sizeof(*unit->lines));
    return result;
}

int gp_dwarf_lines_load_all(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    static const gp_dwarf_wanted_t any;
    gp_buckets_free(&unit->line_buckets);
    unit->line_count = unit->last_line = 0;
    int result = dwarf_lines_read_rows(room, unit, &any);
    gp_buckets_make(&unit->line_buckets, unit->lines, unit->line_count, sizeof(*unit->lines));
    return result;
}
