#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t gp_dwarf_files_number(const gp_dwarf_files_t *files, uint64_t number)
{
    if (number < files->base || number - files->base >= files->count)
        return GP_DWARF_NO_FILE;
    return files->numbers[number - files->base];
}

static int load_files(gp_dwarf_t *dwarf, Dwarf_Die die, gp_dwarf_files_t *files)
{
    char **paths = NULL;
    Dwarf_Signed count = 0;
    Dwarf_Error error = NULL;

    if (dwarf_srcfiles(die, &paths, &count, &error) != DW_DLV_OK) {
        gp_dwarf_error(dwarf, error);
        return 0;
    }
    files->numbers = calloc((size_t)count + 1, sizeof(*files->numbers));
    for (Dwarf_Signed i = 0; i < count; i++) {
        if (files->numbers != NULL)
            files->numbers[i] = gp_dwarf_file(dwarf, paths[i]);
        dwarf_dealloc(dwarf->debug, paths[i], DW_DLA_STRING);
    }
    dwarf_dealloc(dwarf->debug, paths, DW_DLA_LIST);
    files->count = files->numbers ? (size_t)count : 0;
    return files->numbers ? 0 : -ENOMEM;
}

// One row of libdwarf's table in ours. Returns whether it could be read.
static bool read_row(Dwarf_Line from, const gp_dwarf_files_t *files, gp_dwarf_line_t *row)
{
    Dwarf_Addr address = 0;
    Dwarf_Unsigned line = 0, file = 0;
    Dwarf_Bool end = 0;

    if (dwarf_lineaddr(from, &address, NULL) != DW_DLV_OK ||
        dwarf_lineendsequence(from, &end, NULL) != DW_DLV_OK)
        return false;
    *row = (gp_dwarf_line_t){address, GP_DWARF_NO_FILE, 0};
    if (end)
        return true;
    if (dwarf_lineno(from, &line, NULL) != DW_DLV_OK ||
        dwarf_line_srcfileno(from, &file, NULL) != DW_DLV_OK)
        return false;
    row->file = gp_dwarf_files_number(files, file);
    row->line = line <= UINT32_MAX ? (uint32_t)line : 0;
    return true;
}

// Take the rows over, without the sequences of discarded code, which start at address 0.
static size_t read_rows(Dwarf_Line *from, Dwarf_Signed count, const gp_dwarf_files_t *files,
                        gp_dwarf_line_t *rows)
{
    size_t kept = 0, sequence = 0;

    for (Dwarf_Signed i = 0; i < count; i++) {
        if (!read_row(from[i], files, &rows[kept]))
            continue;
        bool end = rows[kept++].file == GP_DWARF_NO_FILE && rows[kept - 1].line == 0;
        if (!end)
            continue;
        if (rows[sequence].address <= 1)
            kept = sequence;
        sequence = kept;
    }
    return kept;
}

typedef struct numbered {
    gp_dwarf_line_t row;
    size_t number;
} numbered_t;

// By address; at one address the end of a sequence comes first, and of the others the last one
// counts.
static int compare_rows(const void *left, const void *right)
{
    const numbered_t *a = left, *b = right;

    if (a->row.address != b->row.address)
        return a->row.address < b->row.address ? -1 : 1;
    bool a_end = a->row.line == 0 && a->row.file == GP_DWARF_NO_FILE;
    bool b_end = b->row.line == 0 && b->row.file == GP_DWARF_NO_FILE;
    if (a_end != b_end)
        return a_end ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static bool in_order(const gp_dwarf_line_t *rows, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (rows[i - 1].address > rows[i].address ||
            (rows[i - 1].address == rows[i].address && rows[i].line == 0))
            return false;
    return true;
}

static int sort_rows(gp_dwarf_line_t *rows, size_t count)
{
    if (in_order(rows, count))
        return 0;
    numbered_t *numbered = calloc(count, sizeof(*numbered));
    if (numbered == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        numbered[i] = (numbered_t){rows[i], i};
    qsort(numbered, count, sizeof(*numbered), compare_rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = numbered[i].row;
    free(numbered);
    return 0;
}

int gp_dwarf_lines_load(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit, Dwarf_Die die,
                        gp_dwarf_files_t *files)
{
    Dwarf_Line_Context context = NULL;
    Dwarf_Unsigned version = 0;
    Dwarf_Small tables = 0;
    Dwarf_Line *lines = NULL;
    Dwarf_Signed count = 0;
    Dwarf_Error error = NULL;

    if (dwarf_srclines_b(die, &version, &tables, &context, &error) != DW_DLV_OK) {
        gp_dwarf_error(dwarf, error);
        return 0;
    }
    files->base = version >= 5 ? 0 : 1;
    int result = load_files(dwarf, die, files);
    if (result == 0 &&
        dwarf_srclines_from_linecontext(context, &lines, &count, &error) == DW_DLV_OK &&
        count > 0) {
        unit->lines = calloc((size_t)count, sizeof(*unit->lines));
        if (unit->lines != NULL)
            unit->line_count = read_rows(lines, count, files, unit->lines);
        result = unit->lines ? sort_rows(unit->lines, unit->line_count) : -ENOMEM;
    }
    gp_dwarf_error(dwarf, error);
    dwarf_srclines_dealloc_b(context);
    return result;
}
