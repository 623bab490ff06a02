// SPDX-License-Identifier: MIT
// Split units: what the file of a program has of them is a skeleton (addresses, the line table, the name of another
// file), the DIEs are in a .dwo, or, put together from many of these, in a .dwp. Both have the id of the unit that they
// belong to. Source: DWARF 5, 7.3.2, 7.3.5 and appendix F; of version 4, gcc's wiki, "DebugFission" and
// "DebugFissionDWP".
#include "symbol/dwarf_unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "symbol/debug_file.h"
#include "symbol/symfs.h"

enum { COLUMNS_MAX = 16, NAME_SIZE = 32 };

typedef struct split_part { // of a section
    uint64_t offset, len;
} split_part_t;

typedef struct gp_dwarf_split {
    gp_bytes_t sections[GP_DEBUG_SPLIT_SECTIONS];
    bool has_lent_texts; // they are the package's
} gp_dwarf_split_t;

static const char *dwarf_split_dwo_name(unsigned number, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%s.dwo", gp_dwarf_section_names[number]);
    return name;
}

// Read a section, which may be NULL, or a part of it.
static gp_bytes_t dwarf_split_read(const gp_elf_t *elf, const Elf64_Shdr *section, const split_part_t *part)
{
    size_t len = 0;
    if (section == NULL || (part != NULL && (part->offset > section->sh_size || part->len == 0 ||
                                             part->len > section->sh_size - part->offset)))
        return (gp_bytes_t){NULL, 0};
    Elf64_Shdr wanted = *section;
    wanted.sh_offset += part != NULL ? part->offset : 0;
    wanted.sh_size = part != NULL ? part->len : wanted.sh_size;
    const uint8_t *bytes = gp_elf_section_read(elf, &wanted, &len);
    return (gp_bytes_t){bytes, bytes != NULL ? len : 0};
}

static void dwarf_split_drop(gp_bytes_t *bytes)
{
    free((void *)(uintptr_t)bytes->data);
    *bytes = (gp_bytes_t){NULL, 0};
}

// --- packages

static bool dwarf_split_package_read(gp_dwarf_package_t *package, const char *path)
{
    char name[NAME_SIZE];
    gp_elf_t elf;
    if (asprintf(&package->path, "%s.dwp", path) < 0)
        package->path = NULL;
    if (package->path == NULL || gp_elf_open(&elf, package->path) < 0)
        return false;
    package->index = dwarf_split_read(&elf, gp_elf_section(&elf, ".debug_cu_index"), NULL);
    package->texts = dwarf_split_read(&elf, gp_elf_section(&elf, dwarf_split_dwo_name(GP_DEBUG_STR, name)), NULL);
    gp_elf_close(&elf);
    return package->index.data != NULL;
}

void gp_dwarf_package_open(gp_dwarf_t *dwarf, const char *module_path)
{
    if (dwarf_split_package_read(&dwarf->package, dwarf->path))
        return;
    gp_dwarf_package_close(&dwarf->package);
    if (strcmp(module_path, dwarf->path) != 0 && !dwarf_split_package_read(&dwarf->package, module_path))
        gp_dwarf_package_close(&dwarf->package);
}

void gp_dwarf_package_close(gp_dwarf_package_t *package)
{
    free(package->path);
    package->path = NULL;
    dwarf_split_drop(&package->index);
    dwarf_split_drop(&package->texts);
}

// Which of our sections a column of the index is about; GP_DEBUG_SPLIT_SECTIONS = none.
static unsigned dwarf_split_section_of_column(uint32_t version, uint32_t column)
{
    switch (column) {
    case DW_SECT_INFO:
        return GP_DEBUG_INFO;
    case DW_SECT_ABBREV:
        return GP_DEBUG_ABBREV;
    case DW_SECT_STR_OFFSETS:
        return GP_DEBUG_STR_OFFSETS;
    case DW_SECT_RNGLISTS:
        return version >= 5 ? GP_DEBUG_RNGLISTS : GP_DEBUG_SPLIT_SECTIONS;
    default:
        return GP_DEBUG_SPLIT_SECTIONS;
    }
}

typedef struct package_index { // counts in the header of .debug_cu_index
    gp_bytes_t bytes;
    uint32_t version, columns, units, slots;
} package_index_t;

enum { INDEX_HEADER = 16, ID_BYTES = 8, NUMBER_BYTES = 4 };

static uint64_t dwarf_split_index_number(const package_index_t *index, uint64_t offset, size_t bytes)
{
    gp_cursor_t cursor = gp_cursor(index->bytes, offset);
    return gp_read_uint(&cursor, bytes);
}

// Version 5 has two bytes of it, and two of padding.
static bool dwarf_split_index_open(package_index_t *index, gp_bytes_t bytes)
{
    gp_cursor_t cursor = gp_cursor(bytes, 0);
    index->bytes = bytes;
    index->version = gp_cursor_u32(&cursor);
    index->columns = gp_cursor_u32(&cursor);
    index->units = gp_cursor_u32(&cursor);
    index->slots = gp_cursor_u32(&cursor);
    uint64_t needed = (uint64_t)index->slots * (ID_BYTES + NUMBER_BYTES) +
                      (uint64_t)NUMBER_BYTES * index->columns * (2 * (uint64_t)index->units + 1);
    return !cursor.bad && (index->version == 2 || index->version == 5) && index->columns <= COLUMNS_MAX &&
           index->slots > 0 && (index->slots & (index->slots - 1)) == 0 && needed <= gp_cursor_left(&cursor);
}

// The row of an id, from 1 on, by a hash table with open addressing; 0 = there is none.
static uint32_t dwarf_split_index_row(const package_index_t *index, uint64_t id)
{
    uint64_t mask = index->slots - 1, slot = id & mask, step = ((id >> 32) & mask) | 1;
    for (uint32_t i = 0; i < index->slots; i++, slot = (slot + step) & mask) {
        uint64_t row = dwarf_split_index_number(
            index, INDEX_HEADER + (uint64_t)index->slots * ID_BYTES + slot * NUMBER_BYTES, NUMBER_BYTES);
        if (row == 0 || dwarf_split_index_number(index, INDEX_HEADER + slot * ID_BYTES, ID_BYTES) == id)
            return row <= index->units ? (uint32_t)row : 0;
    }
    return 0;
}

// Where in a package's sections a unit has its parts. Returns false when it has none.
static bool dwarf_split_package_find(const gp_dwarf_package_t *package, uint64_t id,
                                     split_part_t parts[GP_DEBUG_SPLIT_SECTIONS])
{
    package_index_t index;
    uint32_t row = dwarf_split_index_open(&index, package->index) ? dwarf_split_index_row(&index, id) : 0;
    uint64_t columns = INDEX_HEADER + (uint64_t)index.slots * (ID_BYTES + NUMBER_BYTES);
    uint64_t of_row = columns + (uint64_t)row * index.columns * NUMBER_BYTES;
    uint64_t to_sizes = (uint64_t)index.units * index.columns * NUMBER_BYTES;
    for (uint32_t i = 0; i < index.columns && row != 0; i++) {
        uint64_t column = dwarf_split_index_number(&index, columns + i * NUMBER_BYTES, NUMBER_BYTES);
        unsigned section = dwarf_split_section_of_column(index.version, (uint32_t)column);
        uint64_t at = of_row + i * NUMBER_BYTES;
        if (section < GP_DEBUG_SPLIT_SECTIONS)
            parts[section] = (split_part_t){dwarf_split_index_number(&index, at, NUMBER_BYTES),
                                            dwarf_split_index_number(&index, at + to_sizes, NUMBER_BYTES)};
    }
    return row != 0;
}

// --- a unit's own file

// Take over what is there, if a unit in it has the id.
static bool dwarf_split_take(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, gp_dwarf_split_t *split)
{
    uint64_t number = (uint64_t)(unit - room->dwarf->units);
    gp_cursor_t cursor = gp_cursor(split->sections[GP_DEBUG_INFO], 0);
    gp_dwarf_unit_t found;
    gp_dwarf_extent_t extent;
    do {
        if (!gp_dwarf_unit_next(split->sections, &cursor, &found))
            return false;
    } while (!gp_dwarf_unit_root(room, &found, &extent) || found.dwo_id != unit->dwo_id);
    if (number >= GP_DWARF_SPLIT >> GP_DWARF_UNIT_SHIFT || found.end - found.start > UINT32_MAX)
        return false;
    unit->split = split;
    unit->sections = split->sections;
    unit->start = found.start;
    unit->die = found.die;
    unit->end = found.end;
    unit->place_base = (GP_DWARF_SPLIT | number << GP_DWARF_UNIT_SHIFT) - found.start;
    unit->version = found.version;
    unit->address_bytes = found.address_bytes;
    unit->offset_bytes = found.offset_bytes;
    unit->abbrev_offset = found.abbrev_offset;
    unit->abbrevs = found.abbrevs;
    // Headers come before these tables since version 5, and a .dwo has one of each.
    unsigned wide = found.offset_bytes == 8 ? 8 : 0;
    unit->str_offsets_base = found.version >= 5 ? 8 + wide : 0;
    unit->rnglists_base = 12 + wide;
    return true;
}

void gp_dwarf_split_free(gp_dwarf_split_t *split)
{
    for (size_t i = 0; split != NULL && i < GP_DEBUG_SPLIT_SECTIONS; i++)
        if (i != GP_DEBUG_STR || !split->has_lent_texts)
            dwarf_split_drop(&split->sections[i]);
}

// Types that are merged have units, and sections, of their own: the unit is in one of them.
//   part: of the only one in a package; NULL = it is a .dwo.
static bool dwarf_split_look(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_elf_t *elf, gp_dwarf_split_t *split,
                             const split_part_t *part)
{
    char name[NAME_SIZE];
    const Elf64_Shdr *section = gp_elf_section(elf, dwarf_split_dwo_name(GP_DEBUG_INFO, name));
    for (; section != NULL; section = gp_elf_section_after(elf, section, name)) {
        split->sections[GP_DEBUG_INFO] = dwarf_split_read(elf, section, part);
        if (dwarf_split_take(room, unit, split))
            return true;
        dwarf_split_drop(&split->sections[GP_DEBUG_INFO]);
    }
    return false;
}

//   parts: split_part_t[GP_DEBUG_SPLIT_SECTIONS] of a package; NULL = it is a .dwo.
static bool dwarf_split_try(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const char *path, const split_part_t *parts)
{
    char name[NAME_SIZE];
    gp_dwarf_split_t *split = gp_arena_alloc(&room->memory, sizeof(*split));
    gp_elf_t elf;
    if (split == NULL || gp_elf_open(&elf, path) < 0)
        return false;
    split->has_lent_texts = parts != NULL;
    if (split->has_lent_texts)
        split->sections[GP_DEBUG_STR] = room->dwarf->package.texts;
    for (unsigned i = 0; i < GP_DEBUG_SPLIT_SECTIONS; i++)
        if (i != GP_DEBUG_INFO && (i != GP_DEBUG_STR || !split->has_lent_texts))
            split->sections[i] =
                dwarf_split_read(&elf, gp_elf_section(&elf, dwarf_split_dwo_name(i, name)), parts ? &parts[i] : NULL);
    bool is_taken = dwarf_split_look(room, unit, &elf, split, parts ? &parts[GP_DEBUG_INFO] : NULL);
    gp_elf_close(&elf);
    if (!is_taken)
        gp_dwarf_split_free(split);
    return is_taken;
}

// A place of a unit's .dwo: where the compiler wrote it, else beside the file that names it, as in a moved build.
// Returns false where the path is too long.
static bool dwarf_split_place(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, unsigned number,
                              char place[GP_DEBUG_PATH_SIZE])
{
    const char *name = unit->dwo_name, *base = strrchr(name, '/'), *slash = strrchr(dwarf->path, '/');
    const char *directory = name[0] != '/' && unit->directory != NULL ? unit->directory : "";
    bool absolute = name[0] == '/' || directory[0] == '/';
    int beside = slash != NULL && (number > 0 || !absolute) ? (int)(slash - dwarf->path) + 1 : 0, len;
    if (number == 0)
        len = snprintf(place, GP_DEBUG_PATH_SIZE, "%.*s%s%s%s", beside, dwarf->path, directory,
                       directory[0] != '\0' ? "/" : "", name);
    else
        len = snprintf(place, GP_DEBUG_PATH_SIZE, "%.*s%s", beside, dwarf->path,
                       number == 1 || base == NULL ? name : base + 1);
    return len > 0 && len < GP_DEBUG_PATH_SIZE;
}

enum { PLACES = 3 };

static bool dwarf_split_find(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    char place[GP_DEBUG_PATH_SIZE], below[GP_DEBUG_PATH_SIZE];
    for (unsigned i = 0; i < PLACES; i++) {
        if (!dwarf_split_place(room->dwarf, unit, i, place))
            continue;
        if (dwarf_split_try(room, unit, place, NULL))
            return true;
        for (size_t k = 0; k < gp_symfs_count(); k++)
            if (gp_symfs_path(k, place, below, sizeof(below)) > 0 && dwarf_split_try(room, unit, below, NULL))
                return true;
    }
    return false;
}

void gp_dwarf_split_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    const gp_dwarf_package_t *package = &room->dwarf->package;
    split_part_t parts[GP_DEBUG_SPLIT_SECTIONS] = {{0}};
    if (package->path != NULL && dwarf_split_package_find(package, unit->dwo_id, parts) &&
        dwarf_split_try(room, unit, package->path, parts))
        return;
    if (dwarf_split_find(room, unit))
        return;
    // release: what the place is made of synchronizes with gp_dwarf_missing()
    atomic_store_explicit(&unit->is_missing, true, memory_order_release);
}

size_t gp_dwarf_missing(const gp_dwarf_t *dwarf, char place[GP_DEBUG_PATH_SIZE])
{
    size_t count = 0;
    for (size_t i = 0; i < dwarf->unit_count; i++)
        if (atomic_load_explicit(&dwarf->units[i].is_missing, memory_order_acquire) &&
            count++ == 0) // gp_dwarf_split_load()
            dwarf_split_place(dwarf, &dwarf->units[i], 0, place);
    return count;
}
