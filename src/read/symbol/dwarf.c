// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "symbol/debug_file.h"
#include "symbol/dwarf_unit.h"

static const char *const section_names[GP_DEBUG_SECTIONS] = {
    [GP_DEBUG_INFO] = ".debug_info",
    [GP_DEBUG_ABBREV] = ".debug_abbrev",
    [GP_DEBUG_LINE] = ".debug_line",
    [GP_DEBUG_STR] = ".debug_str",
    [GP_DEBUG_LINE_STR] = ".debug_line_str",
    [GP_DEBUG_RANGES] = ".debug_ranges",
    [GP_DEBUG_RNGLISTS] = ".debug_rnglists",
    [GP_DEBUG_ADDR] = ".debug_addr",
    [GP_DEBUG_STR_OFFSETS] = ".debug_str_offsets",
};

static void read_sections(gp_dwarf_t *dwarf, const gp_elf_t *elf)
{
    for (size_t i = 0; i < GP_DEBUG_SECTIONS; i++) {
        const Elf64_Shdr *section = gp_elf_section(elf, section_names[i]);
        size_t len = 0;
        uint8_t *bytes = section ? gp_elf_section_read(elf, section, &len) : NULL;
        dwarf->sections[i] = (gp_bytes_t){bytes, bytes ? len : 0};
    }
}

static gp_dwarf_t *open_one(const gp_elf_t *elf)
{
    gp_dwarf_t *dwarf = gp_memory_had(calloc(1, sizeof(*dwarf)));
    int result = 0;
    if (dwarf == NULL)
        return NULL;
    read_sections(dwarf, elf);
    if (dwarf->sections[GP_DEBUG_INFO].len == 0)
        result = -ENOENT;
    if (result == 0)
        result = gp_dwarf_units_load(dwarf);
    if (result == 0)
        return dwarf;
    gp_dwarf_close(dwarf);
    errno = -result;
    return NULL;
}

gp_dwarf_t *gp_dwarf_open(const gp_elf_t *elf, const char *elf_path)
{
    gp_dwarf_t *dwarf = open_one(elf);
    gp_elf_t supplement;
    if (dwarf != NULL && gp_debug_supplement_open(elf, elf_path, &supplement) == 0) {
        dwarf->supplement = open_one(&supplement);
        gp_elf_close(&supplement);
    }
    return dwarf;
}

static gp_dwarf_unit_t *find_unit(gp_dwarf_t *dwarf, uint64_t address)
{
    size_t upto = gp_buckets_upto_near(&dwarf->span_buckets, dwarf->spans, dwarf->span_count, sizeof(*dwarf->spans),
                                       address, &dwarf->last_span);
    if (upto == 0 || dwarf->spans[upto - 1].hi <= address)
        return NULL;
    return &dwarf->units[dwarf->spans[upto - 1].unit];
}

static const gp_dwarf_line_t *find_line(gp_dwarf_unit_t *unit, uint64_t address)
{
    size_t upto = gp_buckets_upto_near(&unit->line_buckets, unit->lines, unit->line_count, sizeof(*unit->lines),
                                       address, &unit->last_line);
    return upto > 0 ? &unit->lines[upto - 1] : NULL;
}

static uint32_t find_range(const gp_dwarf_ranges_t *ranges, const gp_buckets_t *buckets, uint64_t address, size_t *last)
{
    size_t upto = gp_buckets_upto_near(buckets, ranges->items, ranges->count, sizeof(*ranges->items), address, last);
    return upto > 0 && address < ranges->items[upto - 1].hi ? ranges->items[upto - 1].number : GP_DWARF_NONE;
}

static uint32_t find_function_number(gp_dwarf_unit_t *unit, uint64_t address)
{
    return find_range(&unit->ranges, &unit->range_buckets, address, &unit->last_range);
}

static uint32_t find_instance(gp_dwarf_function_t *function, uint64_t address)
{
    static const gp_buckets_t none;
    return find_range(&function->ranges, &none, address, &function->last_range);
}

// The function that has the code at the address, with what is inlined into it; NULL = none.
static gp_dwarf_function_t *find_function(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit, uint64_t address)
{
    uint32_t number = find_function_number(unit, address);
    if (number == GP_DWARF_NONE && !unit->searched) {
        gp_dwarf_functions_load(dwarf, unit, true);
        number = find_function_number(unit, address);
    }
    if (number == GP_DWARF_NONE)
        return NULL;
    gp_dwarf_function_t *function = &unit->functions[number];
    if (!function->loaded)
        gp_dwarf_inlined_load(dwarf, unit, function);
    return function->ranges.count > 0 ? function : NULL;
}

// What cannot be read is left out; it is not tried again.
static void load_code(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    if (unit->code_loaded)
        return;
    unit->code_loaded = true;
    gp_dwarf_files_load(dwarf, unit);
    gp_dwarf_lines_load(dwarf, unit);
    if (gp_dwarf_abbrevs_load(dwarf, unit))
        gp_dwarf_functions_load(dwarf, unit, false);
    else
        unit->searched = true;
}

// Say what a function is called.
static void name_place(gp_dwarf_t *dwarf, gp_dwarf_instance_t *instance, gp_dwarf_place_t *place)
{
    if (instance->title == NULL)
        instance->title = gp_dwarf_title(dwarf, instance->die);
    gp_dwarf_title_t *title = instance->title;
    if (title == NULL)
        return;
    place->name = title->name;
    place->shown = title->name ? &title->shown : NULL;
    place->first_file = title->first_file;
    place->first_line = title->first_line;
}

size_t gp_dwarf_find(gp_dwarf_t *dwarf, uint64_t address, gp_dwarf_place_t places[GP_DWARF_PLACES_MAX])
{
    gp_dwarf_unit_t *unit = find_unit(dwarf, address);
    size_t count = 0;
    if (unit == NULL)
        return 0;
    load_code(dwarf, unit);
    const gp_dwarf_line_t *row = find_line(unit, address);
    uint32_t file = row ? row->file : GP_DWARF_NONE, line = row ? row->line : 0;
    gp_dwarf_function_t *function = find_function(dwarf, unit, address);
    uint32_t number = function ? find_instance(function, address) : GP_DWARF_NONE;
    gp_dwarf_memo_t *memo = NULL;
    do {
        gp_dwarf_place_t *place = &places[count++];
        *place = (gp_dwarf_place_t){.file = gp_dwarf_file_name(&dwarf->names, unit, file)};
        place->line = line;
        place->memo = memo;
        if (number == GP_DWARF_NONE)
            return place->file != NULL ? count : 0;
        gp_dwarf_instance_t *instance = &function->instances[number];
        name_place(dwarf, instance, place);
        file = instance->call_file;
        line = instance->call_line;
        memo = &instance->outside;
        number = instance->outer;
    } while (number != GP_DWARF_NONE && count < GP_DWARF_PLACES_MAX);
    return count;
}

void gp_dwarf_free_read(gp_dwarf_t *dwarf)
{
    for (size_t i = 0; i < dwarf->unit_count; i++)
        gp_dwarf_unit_free(&dwarf->units[i]);
    free(dwarf->units);
    free(dwarf->spans);
    gp_buckets_free(&dwarf->span_buckets);
    gp_dwarf_abbrevs_free(dwarf);
    free(dwarf->titles);
    gp_index_free(&dwarf->title_index);
    gp_arena_free(&dwarf->memory);
    free(dwarf->rows);
    free(dwarf->instances);
    free(dwarf->ranges.items);
    gp_dwarf_names_free(&dwarf->names);
}

void gp_dwarf_close(gp_dwarf_t *dwarf)
{
    if (dwarf == NULL)
        return;
    gp_dwarf_close(dwarf->supplement);
    gp_dwarf_free_read(dwarf);
    for (size_t i = 0; i < GP_DEBUG_SECTIONS; i++)
        free((void *)(uintptr_t)dwarf->sections[i].data);
    free(dwarf);
}
