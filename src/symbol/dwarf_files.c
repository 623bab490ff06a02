// SPDX-License-Identifier: MIT
// File names: the header of a unit's line table, and one pool of names for all units, so that equal
// names are equal pointers.
#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES = 4096, COLUMNS_MAX = 16 };

// Take "." and "x/.." out of a path: one file has one name, whatever directory the compiler was started in.
static void dwarf_files_normalize(char *path)
{
    char *parts[256];
    size_t count = 0;
    bool absolute = path[0] == '/';
    char *out = path + absolute;
    char *save = NULL;
    for (char *part = strtok_r(path, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, ".") == 0)
            continue;
        bool up = strcmp(part, "..") == 0;
        if (up && count > 0 && strcmp(parts[count - 1], "..") != 0)
            count--;
        else if (!(up && absolute && count == 0) && count < sizeof(parts) / sizeof(parts[0]))
            parts[count++] = part;
    }
    if (absolute)
        path[0] = '/';
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(parts[i]);
        memmove(out, parts[i], len); // never to the right of where it is
        out += len;
        *out = i + 1 < count ? '/' : '\0';
        out++;
    }
    if (count == 0)
        *out = '\0';
}

static bool dwarf_files_same_file(const void *owner, uint32_t number, const void *key)
{
    return strcmp(((const gp_dwarf_names_t *)owner)->files[number], key) == 0;
}

static uint32_t dwarf_files_intern(gp_dwarf_names_t *names, char *path)
{
    dwarf_files_normalize(path);
    size_t len = strlen(path);
    uint64_t hash = gp_hash_bytes(path, len);
    uint32_t number = gp_index_find(&names->index, hash, dwarf_files_same_file, names, path);

    if (number != GP_INDEX_NONE)
        return number;
    const char *copy = gp_arena_text(&names->texts, path, len);
    if (copy == NULL || gp_grow(&names->files, &names->capacity, names->count, sizeof(*names->files)) < 0 ||
        gp_index_add(&names->index, hash, (uint32_t)names->count) < 0)
        return GP_DWARF_NONE;
    names->files[names->count] = copy;
    return (uint32_t)names->count++;
}

// Put a path together: the unit's directory, the file's directory, its name, each from the first
// absolute one of the later ones on.
static bool dwarf_files_join(char path[PATH_BYTES], const gp_dwarf_unit_t *unit, const gp_dwarf_file_t *file)
{
    const char *outer = unit->directory ? unit->directory : "";
    const char *inner = file->directory ? file->directory : "";
    if (file->name[0] == '/')
        outer = inner = "";
    else if (inner[0] == '/' || inner == outer)
        outer = "";
    int len =
        snprintf(path, PATH_BYTES, "%s%s%s%s%s", outer, outer[0] ? "/" : "", inner, inner[0] ? "/" : "", file->name);
    return len > 0 && len < PATH_BYTES;
}

const char *gp_dwarf_file_name(gp_dwarf_names_t *names, gp_dwarf_unit_t *unit, uint64_t number)
{
    char path[PATH_BYTES];
    if (number >= unit->file_count || unit->files[number].name == NULL)
        return NULL;
    gp_dwarf_file_t *file = &unit->files[number];
    if (file->number == GP_DWARF_NONE && dwarf_files_join(path, unit, file))
        file->number = dwarf_files_intern(names, path);
    return file->number != GP_DWARF_NONE ? names->files[file->number] : NULL;
}

void gp_dwarf_names_free(gp_dwarf_names_t *names)
{
    free(names->files);
    gp_index_free(&names->index);
    gp_arena_free(&names->texts);
}

static int dwarf_files_add_file(gp_dwarf_unit_t *unit, const char *directory, const char *name)
{
    if (gp_grow(&unit->files, &unit->file_capacity, unit->file_count, sizeof(*unit->files)) < 0)
        return -ENOMEM;
    unit->files[unit->file_count++] = (gp_dwarf_file_t){directory, name, GP_DWARF_NONE};
    return 0;
}

typedef struct directories {
    const char **names;
    size_t count, capacity;
} directories_t;

static int dwarf_files_add_directory(directories_t *directories, const char *name)
{
    if (gp_grow(&directories->names, &directories->capacity, directories->count, sizeof(*directories->names)) < 0)
        return -ENOMEM;
    directories->names[directories->count++] = name;
    return 0;
}

static const char *dwarf_files_directory(const directories_t *directories, uint64_t number)
{
    return number < directories->count ? directories->names[number] : NULL;
}

// DWARF 2-4: texts, each table ended by an empty one; files count from 1.
static int dwarf_files_read_old_tables(gp_dwarf_unit_t *unit, directories_t *directories, gp_cursor_t *cursor)
{
    const char *name;
    int result = dwarf_files_add_directory(directories, unit->directory);
    while (result == 0 && (name = gp_cursor_text(cursor)) != NULL && name[0] != '\0')
        result = dwarf_files_add_directory(directories, name);
    if (result == 0)
        result = dwarf_files_add_file(unit, NULL, NULL);
    while (result == 0 && (name = gp_cursor_text(cursor)) != NULL && name[0] != '\0') {
        result = dwarf_files_add_file(unit, dwarf_files_directory(directories, gp_read_uleb(cursor)), name);
        gp_read_uleb(cursor); // time of change
        gp_read_uleb(cursor); // size
    }
    return result;
}

typedef struct columns { // of a table of DWARF 5
    gp_dwarf_attribute_t kinds[COLUMNS_MAX];
    unsigned count;
    bool usual; // a name in .debug_line_str, and nothing else or a directory's number
} columns_t;

static bool dwarf_files_are_usual(const columns_t *columns, const gp_dwarf_unit_t *format)
{
    const gp_dwarf_attribute_t *kinds = columns->kinds;
    return (columns->count == 1 ||
            (columns->count == 2 && kinds[1].name == DW_LNCT_directory_index && kinds[1].form == DW_FORM_udata)) &&
           kinds[0].name == DW_LNCT_path && kinds[0].form == DW_FORM_line_strp && format->offset_bytes == 4;
}

static columns_t dwarf_files_read_columns(gp_cursor_t *cursor, const gp_dwarf_unit_t *format)
{
    columns_t columns = {.count = gp_read_u8(cursor)};
    for (unsigned i = 0; i < columns.count; i++) {
        uint64_t name = gp_read_uleb(cursor), form = gp_read_uleb(cursor);
        if (i >= COLUMNS_MAX || name > UINT16_MAX || form > UINT16_MAX)
            gp_cursor_fail(cursor);
        else
            columns.kinds[i] = (gp_dwarf_attribute_t){(uint16_t)name, (uint16_t)form, 0};
    }
    columns.count = cursor->bad ? 0 : columns.count;
    columns.usual = dwarf_files_are_usual(&columns, format);
    return columns;
}

// Read one row: a path and its directory's number. Returns false at the end, and for a row without
// a byte, of which there could be any number.
static bool dwarf_files_read_row(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *format, const columns_t *columns,
                                 gp_cursor_t *cursor, gp_dwarf_file_t *row)
{
    const uint8_t *before = cursor->pos;
    *row = (gp_dwarf_file_t){.number = 0};
    if (columns->usual) { // quicker
        gp_bytes_t texts = dwarf->sections[GP_DEBUG_LINE_STR];
        uint32_t offset = gp_cursor_u32(cursor);
        uint64_t number = columns->count > 1 ? gp_read_uleb(cursor) : 0;
        row->name = offset < texts.len ? (const char *)texts.data + offset : NULL;
        row->number = number <= UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        return !cursor->bad;
    }
    for (unsigned i = 0; i < columns->count; i++) {
        gp_dwarf_value_t value = gp_dwarf_value(cursor, format, &columns->kinds[i]);
        if (columns->kinds[i].name == DW_LNCT_path)
            row->name = gp_dwarf_value_text(dwarf, format, &value);
        else if (columns->kinds[i].name == DW_LNCT_directory_index)
            row->number = value.number <= UINT32_MAX ? (uint32_t)value.number : UINT32_MAX;
    }
    return !cursor->bad && cursor->pos != before;
}

// Each row has a byte.
static size_t dwarf_files_at_most(uint64_t rows, const gp_cursor_t *cursor)
{
    size_t left = gp_cursor_left(cursor);
    return rows < left ? (size_t)rows : left;
}

static int dwarf_files_read_new_tables(const gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit, const gp_dwarf_unit_t *format,
                                       directories_t *directories, gp_cursor_t *cursor)
{
    columns_t columns = dwarf_files_read_columns(cursor, format);
    uint64_t count = gp_read_uleb(cursor);
    gp_dwarf_file_t row;
    int result = gp_reserve(&directories->names, &directories->capacity, dwarf_files_at_most(count, cursor),
                            sizeof(*directories->names));
    for (; count > 0 && result == 0 && dwarf_files_read_row(dwarf, format, &columns, cursor, &row); count--)
        result = dwarf_files_add_directory(directories, row.name);
    if (directories->count > 0) // number 0 is where the compiler ran; the others start from it
        unit->directory = directories->names[0];
    columns = dwarf_files_read_columns(cursor, format);
    count = gp_read_uleb(cursor);
    if (result == 0)
        result =
            gp_reserve(&unit->files, &unit->file_capacity, dwarf_files_at_most(count, cursor), sizeof(*unit->files));
    for (; count > 0 && result == 0 && dwarf_files_read_row(dwarf, format, &columns, cursor, &row); count--)
        result = dwarf_files_add_file(unit, dwarf_files_directory(directories, row.number), row.name);
    return result;
}

int gp_dwarf_files_load(const gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    directories_t directories = {0};
    gp_dwarf_line_header_t header;
    int result = 0;
    if (unit->files_loaded)
        return 0;
    unit->files_loaded = true;
    if (!gp_dwarf_line_header(dwarf, unit, &header))
        return 0;
    gp_cursor_t cursor = header.tables;
    if (header.format.version >= 5)
        result = dwarf_files_read_new_tables(dwarf, unit, &header.format, &directories, &cursor);
    else
        result = dwarf_files_read_old_tables(unit, &directories, &cursor);
    free(directories.names);
    return result;
}
