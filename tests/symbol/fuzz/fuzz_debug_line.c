// SPDX-License-Identifier: MIT
// Any bytes as a line table: header, file names, program.
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/dwarf_unit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
    gp_dwarf_lines_load(&dwarf.room, &unit);
    for (size_t i = 0; i < unit.line_count; i++) {
        if (i > 0 && unit.lines[i - 1].address > unit.lines[i].address)
            abort();
        if (i < 1000)
            gp_dwarf_file_name(&dwarf.names, &unit, unit.lines[i].file);
    }
    for (uint64_t offset = 0; gp_dwarf_line_table_read(&dwarf, &dwarf.room, &offset);)
        if (offset > size)
            abort();
    gp_dwarf_unit_free(&unit);
    gp_dwarf_free_read(&dwarf);
    return 0;
}
