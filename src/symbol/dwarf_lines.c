#include <errno.h>
#include <stdlib.h>

#include "symbol/dwarf_unit.h"

bool gp_dwarf_line_header(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit,
                          gp_dwarf_line_header_t *header)
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
        length = gp_cursor_uint(&all, 8);
    if (all.bad || length > gp_cursor_left(&all))
        return false;
    gp_cursor_t body = {all.at, all.at + length, false};
    *format = (gp_dwarf_unit_t){
        .version = gp_cursor_u16(&body),
        .address_bytes = unit->address_bytes,
        .offset_bytes = format->offset_bytes,
        .str_offsets_base = unit->str_offsets_base,
    };
    if (format->version >= 5) {
        format->address_bytes = gp_cursor_u8(&body);
        gp_cursor_skip(&body, 1); // size of a segment selector
    }
    uint64_t tables_len = gp_cursor_uint(&body, format->offset_bytes);
    header->program = body;
    gp_cursor_skip(&header->program, tables_len);
    header->instruction_bytes = gp_cursor_u8(&body);
    if (format->version >= 4)
        gp_cursor_skip(&body, 1); // operations in an instruction: 1 but for VLIW
    gp_cursor_skip(&body, 1);     // is_stmt at the start
    header->line_base = (int8_t)gp_cursor_u8(&body);
    header->line_range = gp_cursor_u8(&body);
    header->opcode_base = gp_cursor_u8(&body);
    for (unsigned i = 1; i < header->opcode_base; i++)
        header->operands[i] = gp_cursor_u8(&body);
    header->tables = body;
    return !body.bad && !header->program.bad && format->version >= 2 && format->version <= 5 &&
           header->line_range > 0 && header->opcode_base > 0;
}

typedef struct machine { // the line number program's registers, and what it made
    gp_dwarf_unit_t *unit;
    const gp_dwarf_line_header_t *header;
    uint64_t address;
    uint64_t file, line;
    size_t sequence; // where in unit->lines it starts
    bool sorted;
    int error;
} machine_t;

static void reset(machine_t *machine)
{
    machine->address = 0;
    machine->file = 1;
    machine->line = 1;
    machine->sequence = machine->unit->line_count;
}

// Of several rows at one address the last one counts.
static void emit(machine_t *machine, uint32_t file, uint32_t line)
{
    gp_dwarf_unit_t *unit = machine->unit;
    gp_dwarf_line_t row = {machine->address, file, line};
    size_t count = unit->line_count;

    if (count > machine->sequence && unit->lines[count - 1].address == row.address) {
        unit->lines[count - 1] = row;
        return;
    }
    if (gp_grow(&unit->lines, &unit->line_capacity, count, sizeof(*unit->lines)) < 0) {
        machine->error = -ENOMEM;
        return;
    }
    machine->sorted =
        machine->sorted && (count == 0 || unit->lines[count - 1].address < row.address);
    unit->lines[unit->line_count++] = row;
}

static void emit_row(machine_t *machine)
{
    uint32_t file = machine->file < GP_DWARF_NONE ? (uint32_t)machine->file : GP_DWARF_NONE;

    emit(machine, file, machine->line <= UINT32_MAX ? (uint32_t)machine->line : 0);
}

static void end_sequence(machine_t *machine)
{
    emit(machine, GP_DWARF_NONE, 0);
    // Code that the linker threw away was put at address 0 or 1.
    if (machine->unit->line_count > machine->sequence &&
        machine->unit->lines[machine->sequence].address <= 1)
        machine->unit->line_count = machine->sequence;
    reset(machine);
}

static void run_extended(machine_t *machine, gp_cursor_t *cursor)
{
    uint64_t len = gp_cursor_uleb(cursor);
    gp_cursor_t body = *cursor;

    gp_cursor_skip(cursor, len);
    if (len == 0 || cursor->bad)
        return;
    switch (gp_cursor_u8(&body)) {
    case DW_LNE_end_sequence:
        end_sequence(machine);
        break;
    case DW_LNE_set_address:
        machine->address = gp_cursor_uint(&body, len - 1 <= 8 ? len - 1 : 8);
        break;
    default: // DW_LNE_define_file: no compiler writes it; discriminators: not shown
        break;
    }
}

static void run_standard(machine_t *machine, uint8_t opcode, gp_cursor_t *cursor)
{
    const gp_dwarf_line_header_t *header = machine->header;

    switch (opcode) {
    case DW_LNS_copy:
        emit_row(machine);
        break;
    case DW_LNS_advance_pc:
        machine->address += gp_cursor_uleb(cursor) * header->instruction_bytes;
        break;
    case DW_LNS_advance_line:
        machine->line += (uint64_t)gp_cursor_sleb(cursor);
        break;
    case DW_LNS_set_file:
        machine->file = gp_cursor_uleb(cursor);
        break;
    case DW_LNS_const_add_pc:
        machine->address += (uint64_t)((255 - header->opcode_base) / header->line_range) *
                            header->instruction_bytes;
        break;
    case DW_LNS_fixed_advance_pc:
        machine->address += gp_cursor_u16(cursor);
        break;
    default: // columns, flags, and what is newer than this reader
        for (unsigned i = 0; i < header->operands[opcode]; i++)
            gp_cursor_uleb(cursor);
    }
}

static void run(machine_t *machine, gp_cursor_t cursor)
{
    const gp_dwarf_line_header_t *header = machine->header;

    reset(machine);
    while (machine->error == 0 && !cursor.bad && gp_cursor_left(&cursor) > 0) {
        uint8_t opcode = gp_cursor_u8(&cursor);
        if (opcode >= header->opcode_base) {
            unsigned step = (unsigned)(opcode - header->opcode_base);
            machine->address += (uint64_t)(step / header->line_range) * header->instruction_bytes;
            machine->line +=
                (uint64_t)(int64_t)(header->line_base + (int)(step % header->line_range));
            emit_row(machine);
        } else if (opcode == 0) {
            run_extended(machine, &cursor);
        } else {
            run_standard(machine, opcode, &cursor);
        }
    }
    machine->unit->line_count =
        machine->sequence; // a sequence without an end is not to be believed
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

// Put the sequences in order. Where one runs into the next, or is not in order itself, as no
// compiler writes it, its rows count up to there.
static int sort_rows(gp_dwarf_unit_t *unit)
{
    size_t count, kept = 0;
    sequence_t *sequences = find_sequences(unit->lines, unit->line_count, &count);
    gp_dwarf_line_t *sorted = malloc((unit->line_count + 1) * sizeof(*sorted));

    if (sequences == NULL || sorted == NULL) {
        free(sequences);
        free(sorted);
        return -ENOMEM;
    }
    qsort(sequences, count, sizeof(*sequences), compare_sequences);
    for (size_t i = 0; i < count; i++) {
        uint64_t next = i + 1 < count ? sequences[i + 1].lo : UINT64_MAX;
        for (size_t k = 0; k < sequences[i].count; k++) {
            gp_dwarf_line_t row = unit->lines[sequences[i].first + k];
            if (row.address > next || (kept > 0 && row.address < sorted[kept - 1].address))
                continue;
            if (kept > 0 && row.address == sorted[kept - 1].address)
                kept--; // of several rows at one address the last one counts
            sorted[kept++] = row;
        }
    }
    free(sequences);
    free(unit->lines);
    unit->lines = sorted;
    unit->line_count = kept;
    return 0;
}

int gp_dwarf_lines_load(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    gp_dwarf_line_header_t header;
    machine_t machine = {.unit = unit, .header = &header, .sorted = true};

    if (!gp_dwarf_line_header(dwarf, unit, &header))
        return 0;
    run(&machine, header.program);
    if (machine.error == 0 && !machine.sorted && unit->line_count > 0)
        machine.error = sort_rows(unit);
    return machine.error;
}
