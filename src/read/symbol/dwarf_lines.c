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

typedef struct machine { // the line number program's registers, and what it made
    const gp_dwarf_line_header_t *header;
    gp_cursor_t cursor;
    gp_dwarf_line_t *rows;
    size_t count;    // of rows
    size_t sequence; // the row that it starts with
    uint64_t address;
    uint64_t file, line;
    bool sorted;
} machine_t;

enum { OPCODES_AT_ONCE = 1024 }; // each makes at most one row, for which there is room before

// What follows is inlined into run_some(), so that the registers are registers: nothing there leads outside.

static inline void reset(machine_t *machine)
{
    machine->address = 0;
    machine->file = 1;
    machine->line = 1;
    machine->sequence = machine->count;
}

static inline uint32_t upto_u32(uint64_t number, uint32_t otherwise)
{
    return number <= UINT32_MAX ? (uint32_t)number : otherwise;
}

// Of several rows at one address the last one counts. One that says what the row before says is
// left out: columns and statements are not kept, so that is every third.
static inline void emit(machine_t *machine, uint32_t file, uint32_t line)
{
    size_t count = machine->count;
    if (count > machine->sequence && machine->rows[count - 1].address == machine->address)
        machine->count = --count;
    if (count > machine->sequence && machine->rows[count - 1].file == file && machine->rows[count - 1].line == line)
        return;
    machine->sorted = machine->sorted & (count == 0 || machine->rows[count - 1].address < machine->address);
    machine->rows[count] = (gp_dwarf_line_t){machine->address, file, line};
    machine->count = count + 1;
}

static inline void emit_row(machine_t *machine)
{
    emit(machine, upto_u32(machine->file, GP_DWARF_NONE), upto_u32(machine->line, 0));
}

static inline void end_sequence(machine_t *machine)
{
    emit(machine, GP_DWARF_NONE, 0);
    // Code that the linker threw away was put at address 0 or 1.
    if (machine->count > machine->sequence && machine->rows[machine->sequence].address <= 1)
        machine->count = machine->sequence;
    reset(machine);
}

static inline void run_extended(machine_t *machine)
{
    uint64_t len = gp_read_uleb(&machine->cursor);
    gp_cursor_t body = machine->cursor;
    gp_cursor_skip(&machine->cursor, len);
    if (len == 0 || machine->cursor.bad)
        return;
    switch (gp_read_u8(&body)) {
    case DW_LNE_end_sequence:
        end_sequence(machine);
        break;
    case DW_LNE_set_address:
        machine->address = gp_read_uint(&body, len - 1 <= 8 ? len - 1 : 8);
        break;
    default: // DW_LNE_define_file: no compiler writes it; discriminators: not shown
        break;
    }
}

static inline void run_standard(machine_t *machine, uint8_t opcode)
{
    const gp_dwarf_line_header_t *header = machine->header;
    gp_cursor_t *cursor = &machine->cursor;
    switch (opcode) {
    case DW_LNS_copy:
        emit_row(machine);
        break;
    case DW_LNS_advance_pc:
        machine->address += gp_read_uleb(cursor) * header->instruction_bytes;
        break;
    case DW_LNS_advance_line:
        machine->line += (uint64_t)gp_read_sleb(cursor);
        break;
    case DW_LNS_set_file:
        machine->file = gp_read_uleb(cursor);
        break;
    case DW_LNS_const_add_pc:
        machine->address += (uint64_t)((255 - header->opcode_base) / header->line_range) * header->instruction_bytes;
        break;
    case DW_LNS_fixed_advance_pc:
        machine->address += gp_cursor_u16(cursor);
        break;
    case DW_LNS_set_column:
        gp_read_uleb(cursor);
        break;
    case DW_LNS_negate_stmt:
        break;
    default: // other flags, and what is newer than this reader
        for (unsigned i = 0; i < header->operands[opcode]; i++)
            gp_read_uleb(cursor);
    }
}

typedef struct advances { // how far each special opcode goes
    uint16_t address[256];
    int16_t line[256];
} advances_t;

static void make_advances(advances_t *advances, const gp_dwarf_line_header_t *header)
{
    for (unsigned opcode = header->opcode_base; opcode < 256; opcode++) {
        unsigned step = opcode - header->opcode_base;
        advances->address[opcode] = (uint16_t)(step / header->line_range * header->instruction_bytes);
        advances->line[opcode] = (int16_t)(header->line_base + (int)(step % header->line_range));
    }
}

// Run so many opcodes, or up to the end.
static machine_t run_some(machine_t machine, const advances_t *advances)
{
    unsigned opcode_base = machine.header->opcode_base;
    for (int i = 0; i < OPCODES_AT_ONCE && !machine.cursor.bad && gp_cursor_left(&machine.cursor) > 0; i++) {
        uint8_t opcode = *machine.cursor.pos++;
        if (opcode >= opcode_base) {
            machine.address += advances->address[opcode];
            machine.line += (uint64_t)(int64_t)advances->line[opcode];
            emit_row(&machine);
        } else if (opcode == 0) {
            run_extended(&machine);
        } else {
            run_standard(&machine, opcode);
        }
    }
    return machine;
}

// Run all of it; the rows are in room->rows. Returns 0 or -ENOMEM.
static int run(machine_t *machine, gp_dwarf_room_t *room)
{
    advances_t advances;
    make_advances(&advances, machine->header);
    reset(machine);
    while (!machine->cursor.bad && gp_cursor_left(&machine->cursor) > 0) {
        size_t count = machine->count;
        if (room->row_capacity - count < OPCODES_AT_ONCE &&
            gp_reserve(&room->rows, &room->row_capacity, count + count / 2 + OPCODES_AT_ONCE, sizeof(*room->rows)) < 0)
            return -ENOMEM;
        machine->rows = room->rows;
        *machine = run_some(*machine, &advances);
    }
    machine->count = machine->sequence; // a sequence without an end is not to be believed
    return 0;
}

typedef struct sequence { // rows of ascending addresses, the last one ends it
    uint64_t lo;
    size_t first, count;
} sequence_t;

static bool is_end(const gp_dwarf_line_t *row)
{
    return row->file == GP_DWARF_NONE && row->line == 0;
}

static int compare_sequences(const void *left, const void *right)
{
    const sequence_t *a = left, *b = right;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    return a->first < b->first ? -1 : 1;
}

static sequence_t *find_sequences(const gp_dwarf_line_t *rows, size_t row_count, size_t *count)
{
    sequence_t *sequences = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t first = 0, i = 0; i < row_count; i++) {
        if (!is_end(&rows[i]) && i + 1 < row_count)
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
static size_t merge(gp_dwarf_line_t *sorted, const gp_dwarf_line_t *rows, const sequence_t *sequences, size_t count)
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

// Copy the rows to where they stay.
static int keep_rows(const machine_t *machine, gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    size_t bytes = machine->count * sizeof(*unit->lines), count = 0;
    if (machine->sorted) {
        unit->lines = gp_arena_copy(&room->memory, machine->rows, bytes);
        unit->line_count = unit->lines ? machine->count : 0;
        return unit->lines ? 0 : -ENOMEM;
    }
    sequence_t *sequences = find_sequences(machine->rows, machine->count, &count);
    unit->lines = gp_arena_alloc(&room->memory, bytes);
    if (sequences == NULL || unit->lines == NULL) {
        free(sequences);
        return -ENOMEM;
    }
    gp_sort(sequences, count, sizeof(*sequences), compare_sequences);
    unit->line_count = merge(unit->lines, machine->rows, sequences, count);
    free(sequences);
    return 0;
}

static int read_rows(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    gp_dwarf_line_header_t header;
    if (!gp_dwarf_line_header(room->dwarf, unit, &header))
        return 0;
    machine_t machine = {.header = &header, .cursor = header.program, .sorted = true};
    int result = run(&machine, room);
    return result < 0 || machine.count == 0 ? result : keep_rows(&machine, room, unit);
}

bool gp_dwarf_line_table_read(gp_dwarf_t *dwarf, gp_dwarf_room_t *room, uint64_t *offset)
{
    gp_cursor_t cursor = gp_cursor(dwarf->sections[GP_DEBUG_LINE], *offset);
    uint64_t length = gp_cursor_u32(&cursor);
    if (length == UINT32_MAX)
        length = gp_read_uint(&cursor, 8);
    gp_cursor_skip(&cursor, length);
    // What the rows are depends on no unit.
    gp_dwarf_unit_t unit = {.line_table = {.form = DW_FORM_sec_offset, .number = *offset}};
    if (cursor.bad ||
        gp_grow(&dwarf->line_tables, &dwarf->line_table_capacity, dwarf->line_table_count,
                sizeof(*dwarf->line_tables)) < 0 ||
        read_rows(room, &unit) < 0)
        return false;
    dwarf->line_tables[dwarf->line_table_count++] = (gp_dwarf_line_table_t){*offset, unit.lines, unit.line_count};
    *offset = (uint64_t)(cursor.pos - dwarf->sections[GP_DEBUG_LINE].data);
    return true;
}

static int compare_offset(const void *key, const void *element)
{
    const uint64_t *offset = key;
    const gp_dwarf_line_table_t *table = element;
    return *offset < table->offset ? -1 : *offset > table->offset;
}

// One that was read already; NULL = it was not.
static const gp_dwarf_line_table_t *find_table(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit)
{
    uint64_t offset;
    if (dwarf->line_table_count == 0 || !gp_dwarf_value_constant(&unit->line_table, &offset))
        return NULL;
    return bsearch(&offset, dwarf->line_tables, dwarf->line_table_count, sizeof(*dwarf->line_tables), compare_offset);
}

int gp_dwarf_lines_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    const gp_dwarf_line_table_t *table = find_table(room->dwarf, unit);
    int result = 0;
    if (table != NULL) {
        unit->lines = table->lines;
        unit->line_count = table->count;
    } else {
        result = read_rows(room, unit);
    }
    gp_buckets_make(&unit->line_buckets, unit->lines, unit->line_count, sizeof(*unit->lines));
    return result;
}
