// SPDX-License-Identifier: MIT
// Line number programs: the rows that they make, all or only around wanted addresses.
#include <errno.h>

#include "symbol/dwarf_unit.h"

typedef struct row { // of the line table, as it is read
    uint64_t address, file, line;
} row_t;

typedef struct machine { // the program's registers, and what it made
    const gp_dwarf_line_header_t *header;
    gp_cursor_t cursor;
    gp_dwarf_line_t *rows;
    size_t count;    // of rows
    size_t sequence; // the row that it starts with
    uint64_t address;
    uint64_t file, line;
    bool sorted;
    // Where only some rows are wanted:
    const gp_dwarf_wanted_t *wanted; // NULL = all are
    size_t next;                     // of the wanted addresses
    uint64_t limit;                  // a row from here on is looked at
    row_t before;                    // the last row, whether it is kept or not
    bool disordered;                 // some sequence is: what was made is of no use
} machine_t;

enum { OPCODES_AT_ONCE = 1024, ROWS_AT_ONCE = 2 * OPCODES_AT_ONCE }; // at most, for which there is room before

// These functions are inlined into dwarf_line_program_run(), so that the registers are registers: nothing in them leads
// outside.
#define INLINED inline __attribute__((always_inline))

static INLINED void dwarf_line_program_reset(machine_t *machine)
{
    machine->address = 0;
    machine->file = 1;
    machine->line = 1;
    machine->sequence = machine->count;
    machine->limit = 0; // look at the first row
    machine->before.address = 0;
}

static inline uint32_t dwarf_line_program_upto_u32(uint64_t number, uint32_t otherwise)
{
    return number <= UINT32_MAX ? (uint32_t)number : otherwise;
}

// The last of several rows at one address counts. A row that repeats the former's line is left out: columns and
// statements are not kept, so every third is.
static INLINED void dwarf_line_program_emit(machine_t *machine, uint32_t file, uint32_t line)
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

// Instead of the last row, if that is at the same address of this sequence.
static INLINED void dwarf_line_program_put(machine_t *machine, uint64_t address, uint32_t file, uint32_t line)
{
    size_t count = machine->count;
    count -= count > machine->sequence && machine->rows[count - 1].address == address;
    machine->rows[count] = (gp_dwarf_line_t){address, file, line};
    machine->count = count + 1;
}

static INLINED void dwarf_line_program_set_limit(machine_t *machine)
{
    const gp_dwarf_wanted_t *wanted = machine->wanted;
    machine->limit = machine->next < wanted->count ? wanted->addresses[machine->next] + 1 : UINT64_MAX;
}

// A sequence begins: nothing of it is known up to the first address in it that is wanted.
static INLINED void dwarf_line_program_begin_wanted(machine_t *machine)
{
    const gp_dwarf_wanted_t *wanted = machine->wanted;
    size_t count = machine->count;
    machine->sorted = machine->sorted && (count == 0 || machine->rows[count - 1].address < machine->address);
    dwarf_line_program_put(machine, machine->address, GP_DWARF_UNREAD, 0);
    machine->next = machine->address == 0 ? 0
                                          : gp_buckets_upto(&wanted->buckets, wanted->addresses, wanted->count,
                                                            sizeof(wanted->addresses[0]), machine->address - 1);
    dwarf_line_program_set_limit(machine);
}

// The row before is the one that a wanted address is in, or several are.
static INLINED void dwarf_line_program_keep_before(machine_t *machine)
{
    const row_t *before = &machine->before;
    const gp_dwarf_wanted_t *wanted = machine->wanted;
    dwarf_line_program_put(machine, before->address, dwarf_line_program_upto_u32(before->file, GP_DWARF_NONE),
                           dwarf_line_program_upto_u32(before->line, 0));
    dwarf_line_program_put(machine, machine->address, GP_DWARF_UNREAD, 0);
    while (machine->next < wanted->count && wanted->addresses[machine->next] < machine->address)
        machine->next++;
    dwarf_line_program_set_limit(machine);
}

static INLINED void dwarf_line_program_look_at_row(machine_t *machine)
{
    if (machine->count == machine->sequence)
        dwarf_line_program_begin_wanted(machine);
    else if (machine->next < machine->wanted->count)
        dwarf_line_program_keep_before(machine);
}

static INLINED void dwarf_line_program_emit_row(machine_t *machine, bool all)
{
    if (all) {
        dwarf_line_program_emit(machine, dwarf_line_program_upto_u32(machine->file, GP_DWARF_NONE),
                                dwarf_line_program_upto_u32(machine->line, 0));
        return;
    }
    if (machine->address >= machine->limit)
        dwarf_line_program_look_at_row(machine);
    machine->disordered |= machine->address < machine->before.address;
    machine->before = (row_t){machine->address, machine->file, machine->line};
}

static INLINED void dwarf_line_program_end_sequence(machine_t *machine, bool all)
{
    if (all) {
        dwarf_line_program_emit(machine, GP_DWARF_NONE, 0);
    } else {
        dwarf_line_program_emit_row(machine, all);
        dwarf_line_program_put(machine, machine->address, GP_DWARF_NONE, 0);
    }
    // Code that the linker threw away was put at address 0 or 1.
    if (machine->count > machine->sequence && machine->rows[machine->sequence].address <= 1)
        machine->count = machine->sequence;
    dwarf_line_program_reset(machine);
}

static INLINED void dwarf_line_program_run_extended(machine_t *machine, bool all)
{
    uint64_t len = gp_read_uleb(&machine->cursor);
    gp_cursor_t body = machine->cursor;
    gp_cursor_skip(&machine->cursor, len);
    if (len == 0 || machine->cursor.bad)
        return;
    switch (gp_read_u8(&body)) {
    case DW_LNE_end_sequence:
        dwarf_line_program_end_sequence(machine, all);
        break;
    case DW_LNE_set_address:
        machine->address = gp_read_uint(&body, len - 1 <= 8 ? len - 1 : 8);
        break;
    default: // DW_LNE_define_file: no compiler writes it; discriminators: not shown
        break;
    }
}

static INLINED void dwarf_line_program_run_standard(machine_t *machine, uint8_t opcode)
{
    const gp_dwarf_line_header_t *header = machine->header;
    gp_cursor_t *cursor = &machine->cursor;
    switch (opcode) {
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
    default: // other flags, and newer ones than this reader's
        for (unsigned i = 0; i < header->operands[opcode]; i++)
            gp_read_uleb(cursor);
    }
}

// Most tables of a file have the same: they are made once.
static void dwarf_line_program_make_advances(gp_dwarf_advances_t *advances, const gp_dwarf_line_header_t *header)
{
    const uint8_t kind[] = {header->instruction_bytes, (uint8_t)header->line_base, header->line_range,
                            header->opcode_base};
    if (memcmp(advances->kind, kind, sizeof(kind)) == 0)
        return;
    memcpy(advances->kind, kind, sizeof(kind));
    advances->address[DW_LNS_copy] = 0;
    advances->line[DW_LNS_copy] = 0;
    for (unsigned opcode = header->opcode_base; opcode < 256; opcode++) {
        unsigned step = opcode - header->opcode_base;
        advances->address[opcode] = (uint16_t)(step / header->line_range * header->instruction_bytes);
        advances->line[opcode] = (int16_t)(header->line_base + (int)(step % header->line_range));
    }
}

// Run so many opcodes, or up to the end.
static INLINED machine_t dwarf_line_program_run_some(machine_t machine, const gp_dwarf_advances_t *advances, bool all)
{
    unsigned opcode_base = machine.header->opcode_base;
    for (int i = 0; i < OPCODES_AT_ONCE && !machine.cursor.bad && gp_cursor_left(&machine.cursor) > 0; i++) {
        uint8_t opcode = *machine.cursor.pos++;
        if (opcode >= opcode_base || opcode == DW_LNS_copy) {
            machine.address += advances->address[opcode];
            machine.line += (uint64_t)(int64_t)advances->line[opcode];
            dwarf_line_program_emit_row(&machine, all);
        } else if (opcode == 0) {
            dwarf_line_program_run_extended(&machine, all);
        } else {
            dwarf_line_program_run_standard(&machine, opcode);
        }
    }
    return machine;
}

static int dwarf_line_program_run(machine_t *machine, gp_dwarf_room_t *room)
{
    dwarf_line_program_make_advances(&room->advances, machine->header);
    dwarf_line_program_reset(machine);
    while (!machine->cursor.bad && gp_cursor_left(&machine->cursor) > 0) {
        size_t count = machine->count;
        if (room->row_capacity - count < ROWS_AT_ONCE &&
            gp_reserve(&room->rows, &room->row_capacity, count + count / 2 + ROWS_AT_ONCE, sizeof(*room->rows)) < 0)
            return -ENOMEM;
        machine->rows = room->rows;
        *machine = machine->wanted == NULL ? dwarf_line_program_run_some(*machine, &room->advances, true)
                                           : dwarf_line_program_run_some(*machine, &room->advances, false);
    }
    machine->count = machine->sequence; // a sequence without an end is not to be believed
    return 0;
}

int gp_dwarf_line_program(gp_dwarf_room_t *room, const gp_dwarf_line_header_t *header, const gp_dwarf_wanted_t *wanted,
                          gp_dwarf_rows_t *made)
{
    machine_t machine = {.header = header, .cursor = header->program, .sorted = true, .wanted = wanted};
    int result = dwarf_line_program_run(&machine, room);
    *made = (gp_dwarf_rows_t){machine.count, machine.sorted};
    return machine.disordered ? -EAGAIN : result;
}
