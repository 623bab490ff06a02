#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gp_dwarf_error(gp_dwarf_t *dwarf, Dwarf_Error error)
{
    if (error != NULL)
        dwarf_dealloc(dwarf->debug, error, DW_DLA_ERROR);
}

// libdwarf aborts on an error for which there is neither a place nor a handler.
static void ignore_error(Dwarf_Error error, Dwarf_Ptr context)
{
    gp_dwarf_error(context, error);
}

// Take "." and "x/.." out of a path: one file has one name, whatever directory the compiler was
// started in.
static void normalize(char *path)
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

static bool same_file(const void *owner, uint32_t number, const void *key)
{
    const gp_dwarf_t *dwarf = owner;

    return strcmp(dwarf->files[number], key) == 0;
}

uint32_t gp_dwarf_file(gp_dwarf_t *dwarf, const char *path)
{
    char *copy = gp_arena_text(&dwarf->texts, path, strlen(path));

    if (copy == NULL)
        return GP_DWARF_NO_FILE;
    normalize(copy);
    uint64_t hash = gp_hash_bytes(copy, strlen(copy));
    uint32_t number = gp_index_find(&dwarf->file_index, hash, same_file, dwarf, copy);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&dwarf->files, &dwarf->file_capacity, dwarf->file_count, sizeof(*dwarf->files)) <
            0 ||
        gp_index_add(&dwarf->file_index, hash, (uint32_t)dwarf->file_count) < 0)
        return GP_DWARF_NO_FILE;
    dwarf->files[dwarf->file_count] = copy;
    return (uint32_t)dwarf->file_count++;
}

static int add_span(void *context, uint64_t lo, uint64_t hi)
{
    gp_dwarf_t *dwarf = context;

    if (gp_grow(&dwarf->spans, &dwarf->span_capacity, dwarf->span_count, sizeof(*dwarf->spans)) < 0)
        return -ENOMEM;
    dwarf->spans[dwarf->span_count++] = (gp_dwarf_span_t){lo, hi, (uint32_t)dwarf->unit_count - 1};
    return 0;
}

static int add_unit(gp_dwarf_t *dwarf, Dwarf_Die die)
{
    Dwarf_Off offset = 0;

    if (dwarf_dieoffset(die, &offset, NULL) != DW_DLV_OK)
        return 0;
    if (gp_grow(&dwarf->units, &dwarf->unit_capacity, dwarf->unit_count, sizeof(*dwarf->units)) < 0)
        return -ENOMEM;
    dwarf->units[dwarf->unit_count++] = (gp_dwarf_unit_t){.die = offset};
    return gp_dwarf_ranges(dwarf, die, gp_dwarf_low_pc(die), add_span, dwarf);
}

static int compare_spans(const void *left, const void *right)
{
    const gp_dwarf_span_t *a = left, *b = right;

    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static int read_units(gp_dwarf_t *dwarf)
{
    Dwarf_Unsigned next = 0;
    Dwarf_Error error = NULL;
    int result = 0;

    // The end of the units is DW_DLV_NO_ENTRY; after an error what was read so far counts.
    while (result == 0 &&
           dwarf_next_cu_header_d(dwarf->debug, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                  &next, NULL, &error) == DW_DLV_OK) {
        Dwarf_Die die = NULL;
        if (dwarf_siblingof_b(dwarf->debug, NULL, 1, &die, &error) != DW_DLV_OK)
            continue;
        result = add_unit(dwarf, die);
        dwarf_dealloc(dwarf->debug, die, DW_DLA_DIE);
    }
    gp_dwarf_error(dwarf, error);
    if (dwarf->span_count > 0)
        qsort(dwarf->spans, dwarf->span_count, sizeof(*dwarf->spans), compare_spans);
    return result;
}

gp_dwarf_t *gp_dwarf_open(const char *path)
{
    gp_dwarf_t *dwarf = calloc(1, sizeof(*dwarf));
    Dwarf_Error error = NULL;
    int result = -ENOENT;

    if (dwarf == NULL)
        return NULL;
    dwarf->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (dwarf->fd < 0) {
        result = -errno;
        goto fail;
    }
    if (dwarf_init_b(dwarf->fd, DW_DLC_READ, DW_GROUPNUMBER_ANY, ignore_error, dwarf, &dwarf->debug,
                     &error) != DW_DLV_OK) {
        dwarf_dealloc(NULL, error, DW_DLA_ERROR);
        goto fail;
    }
    result = read_units(dwarf);
    if (result == 0)
        return dwarf;
fail:
    gp_dwarf_close(dwarf);
    errno = -result;
    return NULL;
}

static void load_unit(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    gp_dwarf_files_t files = {.base = 1};
    Dwarf_Die die = NULL;
    Dwarf_Error error = NULL;

    unit->loaded = true;
    if (dwarf_offdie_b(dwarf->debug, unit->die, 1, &die, &error) != DW_DLV_OK) {
        gp_dwarf_error(dwarf, error);
        return;
    }
    gp_dwarf_lines_load(dwarf, unit, die, &files);
    gp_dwarf_functions_load(dwarf, unit, die, &files);
    free(files.numbers);
    dwarf_dealloc(dwarf->debug, die, DW_DLA_DIE);
}

static void find_line(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, uint64_t address,
                      gp_dwarf_place_t *place)
{
    size_t lo = 0, hi = unit->line_count;

    while (lo < hi) { // the first row behind the address
        size_t middle = lo + (hi - lo) / 2;
        if (unit->lines[middle].address <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == 0 || unit->lines[lo - 1].file == GP_DWARF_NO_FILE)
        return;
    place->file = dwarf->files[unit->lines[lo - 1].file];
    place->line = unit->lines[lo - 1].line;
}

static void find_function(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, uint64_t address,
                          gp_dwarf_place_t *place)
{
    size_t lo = 0, hi = unit->function_count;
    const gp_dwarf_function_t *found = NULL;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (unit->functions[middle].lo <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    // Functions rarely nest: a few steps back find the innermost one that is still open.
    for (size_t i = lo; i > 0 && lo - i < 16 && found == NULL; i--)
        if (unit->functions[i - 1].hi > address)
            found = &unit->functions[i - 1];
    if (found == NULL)
        return;
    place->first_line = found->line;
    if (found->file != GP_DWARF_NO_FILE)
        place->first_file = dwarf->files[found->file];
}

void gp_dwarf_find(gp_dwarf_t *dwarf, uint64_t address, gp_dwarf_place_t *place)
{
    size_t lo = 0, hi = dwarf->span_count;

    memset(place, 0, sizeof(*place));
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (dwarf->spans[middle].lo <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == 0 || dwarf->spans[lo - 1].hi <= address)
        return;
    gp_dwarf_unit_t *unit = &dwarf->units[dwarf->spans[lo - 1].unit];
    if (!unit->loaded)
        load_unit(dwarf, unit);
    find_line(dwarf, unit, address, place);
    find_function(dwarf, unit, address, place);
}

void gp_dwarf_close(gp_dwarf_t *dwarf)
{
    if (dwarf == NULL)
        return;
    for (size_t i = 0; i < dwarf->unit_count; i++) {
        free(dwarf->units[i].lines);
        free(dwarf->units[i].functions);
    }
    if (dwarf->debug != NULL)
        dwarf_finish(dwarf->debug, NULL);
    if (dwarf->fd >= 0)
        close(dwarf->fd);
    free(dwarf->units);
    free(dwarf->spans);
    free(dwarf->files);
    gp_index_free(&dwarf->file_index);
    gp_arena_free(&dwarf->texts);
    free(dwarf);
}
