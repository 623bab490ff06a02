// SPDX-License-Identifier: MIT
// Growing numbers of coroutines, by the place that spawns them: a leak, or work without an end.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain_parts.h"

enum { LEAST = 50, PARTS = 4, PART_PERCENT = 10 };

typedef struct spawned {
    uint32_t stack, coro; // the site; one of them
    uint64_t alive, born, first_ns, by_part[PARTS];
} spawned_t;

// How many there have been, from when on.
static void explain_growth_count_born(const gp_dataset_t *dataset, spawned_t *site)
{
    site->first_ns = UINT64_MAX;
    for (size_t i = 0; i < dataset->facts.coros.count; i++) {
        const gp_facts_coro_t *coro = &dataset->facts.coros.items[i];
        if (coro->spawn_stack != site->stack)
            continue;
        site->born++;
        site->first_ns = coro->record.birth_ns < site->first_ns ? coro->record.birth_ns : site->first_ns;
    }
}

// Which part of the time since the first one the living ones come from.
static void explain_growth_divide(const gp_dataset_t *dataset, const uint32_t *coros, spawned_t *site)
{
    uint64_t time_ns = dataset->facts.end_ns > site->first_ns ? dataset->facts.end_ns - site->first_ns + 1 : 1;
    for (size_t i = 0; i < site->alive; i++) {
        uint64_t birth_ns = dataset->facts.coros.items[coros[i]].record.birth_ns - site->first_ns;
        site->by_part[birth_ns < time_ns ? birth_ns * PARTS / time_ns : PARTS - 1]++;
    }
}

// As many of each part of the time are left: neither what is at work now, nor what was made once.
static bool explain_growth_is_steady(const spawned_t *site)
{
    for (size_t i = 0; i + 1 < PARTS; i++) // in the last one the program may have been about to end
        if (site->by_part[i] * 100 < site->alive * PART_PERCENT)
            return false;
    return site->alive >= LEAST && site->alive * 2 >= site->born;
}

static void explain_growth_say(gp_explaining_t *explaining, const spawned_t *site)
{
    const gp_dataset_t *dataset = explaining->dataset;
    const gp_facts_stack_t *stack = &dataset->facts.stacks.items[site->stack];
    char name[256], code[384];
    gp_finding_t *finding = gp_explain_add(explaining, "growing", 0);
    gp_loc_t *path = finding != NULL ? malloc(((size_t)stack->depth + 1) * sizeof(*path)) : NULL;
    if (finding == NULL || path == NULL)
        return;
    for (uint32_t i = 0; i < stack->depth; i++)
        path[i] = stack->frames[stack->depth - 1 - i];
    gp_explain_place(explaining, path, stack->depth, finding);
    free(path);
    gp_report_coro_label(dataset, site->coro, explaining->symbolizer, true, name, sizeof(name));
    finding->times = site->alive;
    snprintf(finding->sentence, sizeof(finding->sentence),
             "%s spawns coroutines (%.80s) that do not end: %" PRIu64 " of %" PRIu64 " are still there, %" PRIu64
             " of them since the first quarter of that time",
             gp_explain_code(finding, code, sizeof(code)), name, site->alive, site->born, site->by_part[0]);
    snprintf(finding->hurt, sizeof(finding->hurt), "memory, and whoever waits for them");
    snprintf(finding->sure, sizeof(finding->sure), "the number is exact; whether they are meant to stay is not known");
    snprintf(finding->show, sizeof(finding->show), "coroutines");
}

static bool explain_growth_counts(const gp_dataset_t *dataset, const gp_census_record_t *record, uint32_t coro)
{
    return coro != GP_INDEX_NONE && record->state != GP_CENSUS_IDLE && record->state != GP_CENSUS_RUNNING &&
           dataset->facts.coros.items[coro].record.kind != GP_CORO_THREAD &&
           dataset->facts.coros.items[coro].spawn_stack != 0;
}

static const gp_facts_coro_t *sorted_coros; // qsort() has no context

static int explain_growth_by_site(const void *left, const void *right)
{
    uint32_t a = sorted_coros[*(const uint32_t *)left].spawn_stack,
             b = sorted_coros[*(const uint32_t *)right].spawn_stack;
    return a < b ? -1 : a > b;
}

// The living ones, by site. Returns how many.
static size_t explain_growth_gather(const gp_dataset_t *dataset, uint32_t *coros)
{
    size_t count = 0;
    for (size_t i = 0; i < dataset->census.count; i++) {
        uint32_t coro = gp_dataset_coro_find(dataset, dataset->census.items[i].coro_id);
        if (explain_growth_counts(dataset, &dataset->census.items[i], coro))
            coros[count++] = coro;
    }
    sorted_coros = dataset->facts.coros.items;
    if (count > 0)
        qsort(coros, count, sizeof(*coros), explain_growth_by_site);
    return count;
}

int gp_explain_growth(gp_explaining_t *explaining)
{
    const gp_dataset_t *dataset = explaining->dataset;
    uint32_t *coros = calloc(dataset->census.count + 1, sizeof(*coros));
    if (coros == NULL)
        return -ENOMEM;
    size_t count = explaining->trace == 0 ? explain_growth_gather(dataset, coros) : 0;
    for (size_t i = 0, next; i < count; i = next) {
        spawned_t site = {.stack = dataset->facts.coros.items[coros[i]].spawn_stack, .coro = coros[i]};
        for (next = i; next < count && dataset->facts.coros.items[coros[next]].spawn_stack == site.stack; next++)
            site.alive++;
        if (site.alive < LEAST)
            continue;
        explain_growth_count_born(dataset, &site);
        explain_growth_divide(dataset, &coros[i], &site);
        if (explain_growth_is_steady(&site))
            explain_growth_say(explaining, &site);
    }
    free(coros);
    return 0;
}
