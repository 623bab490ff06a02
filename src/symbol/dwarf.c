// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "symbol/debug_file.h"
#include "symbol/dwarf_unit.h"

static gp_dwarf_t *dwarf_begin(const gp_elf_t *elf, gp_helpers_t *helpers, const gp_dwarf_asked_t *asked)
{
    gp_dwarf_t *dwarf = gp_memory_had(calloc(1, sizeof(*dwarf)));
    if (dwarf == NULL)
        return NULL;
    dwarf->helpers = helpers;
    if (asked != NULL)
        dwarf->asked = *asked;
    dwarf->room.dwarf = dwarf;
    for (size_t i = 0; i < GP_DWARF_JOB_ROOMS; i++)
        dwarf->job_rooms[i].dwarf = dwarf;
    gp_dwarf_sections_begin(dwarf, elf);
    return dwarf;
}

gp_dwarf_t *gp_dwarf_end(gp_dwarf_t *dwarf)
{
    int result = 0;
    if (dwarf == NULL)
        return NULL;
    gp_dwarf_sections_end(dwarf);
    if (dwarf->sections[GP_DEBUG_INFO].len == 0)
        result = -ENOENT;
    if (result == 0)
        result = gp_dwarf_units_load(dwarf);
    gp_dwarf_tables_end(dwarf);
    if (result == 0)
        return dwarf;
    gp_dwarf_close(dwarf);
    errno = -result;
    return NULL;
}

gp_dwarf_t *gp_dwarf_begin(const gp_elf_t *elf, const char *elf_path, const char *module_path, gp_helpers_t *helpers,
                           const gp_dwarf_asked_t *asked)
{
    gp_dwarf_t *dwarf = dwarf_begin(elf, helpers, asked);
    gp_elf_t supplement;
    if (dwarf == NULL)
        return NULL;
    dwarf->path = gp_memory_had(strdup(elf_path));
    if (dwarf->path != NULL)
        gp_dwarf_package_open(dwarf, module_path);
    if (gp_debug_supplement_open(elf, elf_path, &supplement) == 0) {
        dwarf->supplement = gp_dwarf_end(dwarf_begin(&supplement, helpers, NULL));
        gp_elf_close(&supplement);
    }
    return dwarf;
}

gp_dwarf_t *gp_dwarf_open(const gp_elf_t *elf, const char *elf_path)
{
    return gp_dwarf_end(gp_dwarf_begin(elf, elf_path, elf_path, NULL, NULL));
}

gp_dwarf_unit_t *gp_dwarf_unit_of(gp_dwarf_t *dwarf, uint64_t address)
{
    size_t upto = gp_buckets_upto_near(&dwarf->span_buckets, dwarf->spans, dwarf->span_count, sizeof(*dwarf->spans),
                                       address, &dwarf->last_span);
    if (upto == 0 || dwarf->spans[upto - 1].hi <= address)
        return NULL;
    return &dwarf->units[dwarf->spans[upto - 1].unit];
}

static const gp_dwarf_line_t *dwarf_find_line(gp_dwarf_unit_t *unit, uint64_t address)
{
    size_t upto = gp_buckets_upto_near(&unit->line_buckets, unit->lines, unit->line_count, sizeof(*unit->lines),
                                       address, &unit->last_line);
    return upto > 0 ? &unit->lines[upto - 1] : NULL;
}

// The same where not all lines are read: it was not said that this one was going to be looked up.
static const gp_dwarf_line_t *dwarf_find_any_line(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit, uint64_t address)
{
    const gp_dwarf_line_t *row = dwarf_find_line(unit, address);
    if (row == NULL || row->file != GP_DWARF_UNREAD)
        return row;
    gp_dwarf_lines_load_all(&dwarf->room, unit);
    return dwarf_find_line(unit, address);
}

static uint32_t dwarf_find_range(const gp_dwarf_ranges_t *ranges, const gp_buckets_t *buckets, uint64_t address,
                                 size_t *last)
{
    size_t upto = gp_buckets_upto_near(buckets, ranges->items, ranges->count, sizeof(*ranges->items), address, last);
    return upto > 0 && address < ranges->items[upto - 1].hi ? ranges->items[upto - 1].number : GP_DWARF_NONE;
}

static uint32_t dwarf_find_function_number(gp_dwarf_unit_t *unit, uint64_t address)
{
    return dwarf_find_range(&unit->ranges, &unit->range_buckets, address, &unit->last_range);
}

static uint32_t dwarf_find_instance(gp_dwarf_function_t *function, uint64_t address)
{
    static const gp_buckets_t none;
    return dwarf_find_range(&function->ranges, &none, address, &function->last_range);
}

gp_dwarf_function_t *gp_dwarf_function_at(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, uint64_t address)
{
    uint32_t number = dwarf_find_function_number(unit, address);
    if (number == GP_DWARF_NONE && !unit->searched) {
        gp_dwarf_functions_load(room, unit, true);
        number = dwarf_find_function_number(unit, address);
    }
    if (number == GP_DWARF_NONE)
        return NULL;
    gp_dwarf_function_t *function = &unit->functions[number];
    if (!function->loaded)
        gp_dwarf_inlined_load(room, unit, function);
    return function->ranges.count > 0 ? function : NULL;
}

void gp_dwarf_code_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted)
{
    if (unit->code_loaded)
        return;
    unit->code_loaded = true;
    gp_dwarf_files_load(room->dwarf, unit);
    gp_dwarf_lines_load(room, unit, wanted);
    if (unit->dwo_name != NULL && room->dwarf->path != NULL)
        gp_dwarf_split_load(room, unit);
    if (gp_dwarf_abbrevs_load(room, unit))
        gp_dwarf_functions_load(room, unit, false);
    else
        unit->searched = true;
}

// Say what a function is called.
static void dwarf_name_place(gp_dwarf_t *dwarf, gp_dwarf_instance_t *instance, gp_dwarf_place_t *place)
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
    static const gp_dwarf_wanted_t any;
    gp_dwarf_unit_t *unit = gp_dwarf_unit_of(dwarf, address);
    size_t count = 0;
    if (unit == NULL)
        return 0;
    gp_dwarf_settle(dwarf, unit);
    gp_dwarf_code_load(&dwarf->room, unit, &any);
    const gp_dwarf_line_t *row = dwarf_find_any_line(dwarf, unit, address);
    uint32_t file = row ? row->file : GP_DWARF_NONE, line = row ? row->line : 0;
    gp_dwarf_function_t *function = gp_dwarf_function_at(&dwarf->room, unit, address);
    uint32_t number = function ? dwarf_find_instance(function, address) : GP_DWARF_NONE;
    gp_dwarf_memo_t *memo = NULL;
    do {
        gp_dwarf_place_t *place = &places[count++];
        *place = (gp_dwarf_place_t){.file = gp_dwarf_file_name(&dwarf->names, unit, file)};
        place->line = line;
        place->memo = memo;
        if (number == GP_DWARF_NONE)
            return place->file != NULL ? count : 0;
        gp_dwarf_instance_t *instance = &function->instances[number];
        dwarf_name_place(dwarf, instance, place);
        file = instance->call_file;
        line = instance->call_line;
        memo = &instance->outside;
        number = instance->outer;
    } while (number != GP_DWARF_NONE && count < GP_DWARF_PLACES_MAX);
    return count;
}

static void dwarf_free_room(gp_dwarf_room_t *room)
{
    gp_dwarf_abbrevs_free(room);
    gp_arena_free(&room->memory);
    free(room->rows);
    free(room->instances);
    free(room->ranges.items);
}

void gp_dwarf_free_read(gp_dwarf_t *dwarf)
{
    for (size_t i = 0; i < dwarf->unit_count; i++)
        gp_dwarf_unit_free(&dwarf->units[i]);
    free(dwarf->units);
    free(dwarf->spans);
    free(dwarf->line_tables);
    free(dwarf->abbrevs);
    gp_buckets_free(&dwarf->span_buckets);
    free(dwarf->titles);
    gp_index_free(&dwarf->title_index);
    dwarf_free_room(&dwarf->room);
    for (size_t i = 0; i < GP_DWARF_JOB_ROOMS; i++)
        dwarf_free_room(&dwarf->job_rooms[i]);
    gp_dwarf_names_free(&dwarf->names);
}

void gp_dwarf_close(gp_dwarf_t *dwarf)
{
    if (dwarf == NULL)
        return;
    gp_dwarf_close(dwarf->supplement);
    gp_dwarf_expected_free(dwarf);
    gp_dwarf_free_read(dwarf);
    for (size_t i = 0; i < GP_DEBUG_SECTIONS; i++)
        free((void *)(uintptr_t)dwarf->sections[i].data);
    gp_dwarf_package_close(&dwarf->package);
    free(dwarf->path);
    free(dwarf);
}
