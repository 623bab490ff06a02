// SPDX-License-Identifier: MIT
#include "symbol/symbol_names.h"

#include <stdlib.h>

#include "symbol/demangle.h"

enum { PART = 256 }; // ranges, for a job: half a millisecond for long names

typedef struct part {
    gp_job_t job;
    gp_symbol_names_t *names;
    uint32_t first, end; // of addresses
    bool is_taken;
    gp_arena_t texts;
} part_t;

struct gp_symbol_names {
    gp_symbol_table_t table; // the owner's: ranges, and how to find them
    gp_helpers_t *helpers;
    uint64_t *addresses;
    size_t part_count;
    part_t parts[];
};

static void symbol_names_make_names(gp_job_t *job)
{
    part_t *part = (part_t *)job;
    const gp_symbol_names_t *names = part->names;
    for (uint32_t i = part->first; i < part->end; i++) {
        gp_range_t *range = gp_symbol_table_find(&names->table, names->addresses[i]);
        if (range != NULL && range->made == NULL)
            range->made = gp_demangle(&part->texts, range->name);
    }
}

// The addresses of a part end where those of the next one begin.
static size_t symbol_names_end_of_part(const gp_symbol_names_t *names, size_t number, size_t first, size_t count)
{
    size_t next = (number + 1) * PART;
    if (next >= names->table.count)
        return count;
    while (first < count && names->addresses[first] < names->table.ranges[next].lo)
        first++;
    return first;
}

static void symbol_names_give_parts(gp_symbol_names_t *names, size_t address_count)
{
    size_t first = 0;
    for (size_t i = 0; i < names->part_count; i++) {
        size_t end = symbol_names_end_of_part(names, i, first, address_count);
        names->parts[i] = (part_t){
            .job = {.work = symbol_names_make_names}, .names = names, .first = (uint32_t)first, .end = (uint32_t)end};
        if (first < end)
            gp_helpers_give(names->helpers, &names->parts[i].job);
        first = end;
    }
}

gp_symbol_names_t *gp_symbol_names_expect(const gp_symbol_table_t *table, gp_helpers_t *helpers,
                                          const uint64_t *addresses, size_t count)
{
    size_t parts = table->count / PART + 1;
    if (helpers == NULL || count == 0 || count > UINT32_MAX || table->count == 0)
        return NULL;
    gp_symbol_names_t *names = calloc(1, sizeof(*names) + parts * sizeof(names->parts[0]));
    uint64_t *copy = names != NULL ? malloc(count * sizeof(*copy)) : NULL;
    if (copy == NULL) {
        free(names);
        return NULL; // each is made when it is asked about
    }
    for (size_t i = 0; i < count; i++)
        copy[i] = addresses[i];
    names->table = *table;
    names->helpers = helpers;
    names->addresses = copy;
    names->part_count = parts;
    symbol_names_give_parts(names, count);
    return names;
}

void gp_symbol_names_settle(gp_symbol_names_t *names, const gp_range_t *range)
{
    part_t *part = names != NULL ? &names->parts[(size_t)(range - names->table.ranges) / PART] : NULL;
    if (part == NULL || part->is_taken)
        return;
    gp_helpers_take_helping(names->helpers, &part->job);
    part->is_taken = true;
}

void gp_symbol_names_free(gp_symbol_names_t *names)
{
    if (names == NULL)
        return;
    for (size_t i = 0; i < names->part_count; i++)
        gp_helpers_withdraw(names->helpers, &names->parts[i].job);
    for (size_t i = 0; i < names->part_count; i++)
        gp_arena_free(&names->parts[i].texts);
    free(names->addresses);
    free(names);
}
