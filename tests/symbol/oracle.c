// SPDX-License-Identifier: MIT
// oracle FILE: holds the DWARF reader against libdwarf, at every line row, and at both ends of every function's and
// every inlined function's range. Between two such addresses neither reader's answer changes.
//
// Compared are file and line of the code, linkage name, file and line of the declaration, of the function there and of
// all those around it where it is inlined. Exit status 0: no difference; 77: no debug information is installed.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdwarf_reader.h"
#include "symbol/debug_file.h"
#include "symbol/dwarf.h"

enum { SKIPPED = 77, SHOWN_MAX = 10 };

static bool same_text(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

// libdwarf's answer, in the form of the reader's answers.
static size_t expected_at(const oracle_t *oracle, uint64_t address, gp_dwarf_place_t places[GP_DWARF_PLACES_MAX])
{
    const oracle_row_t *row = oracle_row(oracle, address);
    const oracle_function_t *function = oracle_function(oracle, address);
    gp_dwarf_place_t place = {.file = row ? row->file : NULL, .line = row ? row->line : 0};
    size_t count = 0;
    if (!oracle_has_code(oracle, address)) // padding: a line row may run on into it
        return 0;
    for (; function != NULL && count < GP_DWARF_PLACES_MAX; function = function->outer) {
        place.name = function->name;
        place.first_file = function->file;
        place.first_line = function->line;
        places[count++] = place;
        place.file = function->call_file;
        place.line = function->call_line;
    }
    if (count == 0 && row != NULL)
        places[count++] = place;
    return count;
}

static bool same_place(const gp_dwarf_place_t *one, const gp_dwarf_place_t *other)
{
    return same_text(one->name, other->name) && same_text(one->file, other->file) && one->line == other->line &&
           same_text(one->first_file, other->first_file) && one->first_line == other->first_line;
}

static void show(const char *title, const gp_dwarf_place_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("    %s %zu: %s at %s:%u, declared at %s:%u\n", title, i, places[i].name, places[i].file, places[i].line,
               places[i].first_file, places[i].first_line);
}

static bool agrees(const oracle_t *oracle, gp_dwarf_t *dwarf, uint64_t address, bool shown)
{
    gp_dwarf_place_t ours[GP_DWARF_PLACES_MAX], theirs[GP_DWARF_PLACES_MAX];
    size_t count = gp_dwarf_find(dwarf, address, ours), expected = expected_at(oracle, address, theirs);
    const oracle_row_t *row = oracle_row(oracle, address);
    bool same = count == expected;
    if (count > 0 && row != NULL && row->first_file != NULL && same_text(ours[0].file, row->first_file))
        theirs[0].file = row->first_file;
    for (size_t i = 0; same && i < count; i++)
        same = same_place(&ours[i], &theirs[i]);
    if (same || !shown)
        return same;
    printf("  0x%lx:\n", (unsigned long)address);
    show("greenprof", ours, count);
    show("libdwarf ", theirs, expected);
    return false;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// All addresses at which an answer may change, each once.
static uint64_t *questions(const oracle_t *oracle, size_t *count)
{
    uint64_t *addresses = calloc(oracle->row_count + 3 * oracle->range_count + 1, sizeof(*addresses));
    size_t all = 0;
    for (size_t i = 0; i < oracle->row_count; i++)
        addresses[all++] = oracle->rows[i].address;
    for (size_t i = 0; i < oracle->range_count; i++) {
        addresses[all++] = oracle->ranges[i].lo;
        addresses[all++] = oracle->ranges[i].hi - 1;
        addresses[all++] = oracle->ranges[i].hi;
    }
    qsort(addresses, all, sizeof(*addresses), compare_addresses);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (i == 0 || addresses[i] != addresses[i - 1])
            addresses[(*count)++] = addresses[i];
    return addresses;
}

static int compare(const char *path, const oracle_t *oracle, gp_dwarf_t *dwarf)
{
    size_t count, differ = 0;
    uint64_t *addresses = questions(oracle, &count);
    for (size_t i = 0; i < count; i++)
        differ += !agrees(oracle, dwarf, addresses[i], differ < SHOWN_MAX);
    printf("%s: %zu line rows (%zu more have no bytes, %zu are of discarded code), %zu ranges of functions, %zu of "
           "inlined ones: %zu addresses, %zu differ\n",
           path, oracle->rows_read - oracle->rows_empty - oracle->rows_discarded, oracle->rows_empty,
           oracle->rows_discarded, oracle->range_count - oracle->inlined_count, oracle->inlined_count, count, differ);
    free(addresses);
    return differ > 0 || oracle->inlined_count == 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    static char path[GP_DEBUG_PATH_SIZE];
    gp_elf_t elf, debug;
    if (argc != 2 || gp_elf_open(&elf, argv[1]) < 0)
        return 2;
    if (gp_elf_section(&elf, ".debug_info") != NULL) {
        debug = elf;
        snprintf(path, sizeof(path), "%s", argv[1]);
    } else if (gp_debug_file_open(&elf, argv[1], &debug, path) < 0) {
        printf("%s: its debug information is not installed\n", argv[1]);
        return SKIPPED;
    }
    gp_dwarf_t *dwarf = gp_dwarf_open(&debug, path);
    oracle_t *oracle = oracle_open(path);
    return dwarf != NULL && oracle != NULL ? compare(argv[1], oracle, dwarf) : 1;
}
