// SPDX-License-Identifier: MIT
// Any bytes as a line table: header, file names, program.
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/dwarf_unit.h"

enum { WANTED_MAX = 64 };

// The row that has an address; NULL = none.
static const gp_dwarf_line_t *row_at(const gp_dwarf_unit_t *unit, uint64_t address)
{
    size_t upto = gp_buckets_upto(&unit->line_buckets, unit->lines, unit->line_count, sizeof(*unit->lines), address);
    return upto > 0 ? &unit->lines[upto - 1] : NULL;
}

// Where only some rows are wanted, these say what they say among all, and none that is not wanted says anything else.
static void check_wanted(gp_dwarf_t *dwarf, const gp_dwarf_unit_t *all)
{
    gp_dwarf_unit_t some = {.version = 5, .address_bytes = 8, .offset_bytes = 4, .line_table = all->line_table};
    uint64_t addresses[WANTED_MAX];
    gp_dwarf_wanted_t wanted = {.addresses = addresses};
    for (size_t i = 0; i < all->line_count && wanted.count < WANTED_MAX; i += 3) {
        uint64_t address = all->lines[i].address + i % 2;
        if (wanted.count == 0 || address > addresses[wanted.count - 1])
            addresses[wanted.count++] = address;
    }
    if (wanted.count == 0 || gp_dwarf_lines_load(&dwarf->room, &some, &wanted) < 0)
        return;
    for (size_t i = 0, next = 0; i < all->line_count; i++) {
        const gp_dwarf_line_t *row = row_at(&some, all->lines[i].address);
        if (row == NULL ||
            (row->file != GP_DWARF_UNREAD && (row->file != all->lines[i].file || row->line != all->lines[i].line)))
            abort();
        for (; next < wanted.count && addresses[next] <= all->lines[i].address + i % 2; next++) {
            const gp_dwarf_line_t *found = row_at(&some, addresses[next]), *right = row_at(all, addresses[next]);
            if (right->file != GP_DWARF_NONE && (found->file != right->file || found->line != right->line))
                abort();
        }
    }
    gp_dwarf_unit_free(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const gp_dwarf_wanted_t any;
    static const uint8_t texts[] = "text one\0/text two\0../text three";
    gp_dwarf_t dwarf = {
        .sections[GP_DEBUG_LINE] = {data, size},
        .sections[GP_DEBUG_LINE_STR] = {texts, sizeof(texts) - 1},
        .sections[GP_DEBUG_STR] = {texts, sizeof(texts) - 1},
    };
    dwarf.room.dwarf = &dwarf;
    gp_dwarf_unit_t unit = {
        .version = 5,
        .address_bytes = 8,
        .offset_bytes = 4,
        .directory = "/directory",
        .line_table = {.form = DW_FORM_sec_offset},
    };
    gp_dwarf_files_load(&dwarf, &unit);
    gp_dwarf_lines_load_all(&dwarf.room, &unit);
    for (size_t i = 0; i < unit.line_count; i++) {
        if (i > 0 && unit.lines[i - 1].address > unit.lines[i].address)
            abort();
        if (i < 1000)
            gp_dwarf_file_name(&dwarf.names, &unit, unit.lines[i].file);
    }
    check_wanted(&dwarf, &unit);
    for (uint64_t offset = 0; gp_dwarf_line_table_read(&dwarf, &dwarf.room, &any, &offset);)
        if (offset > size)
            abort();
    gp_dwarf_unit_free(&unit);
    gp_dwarf_free_read(&dwarf);
    return 0;
}
