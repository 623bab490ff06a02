// SPDX-License-Identifier: MIT
#include "census_held.h"

#include <stdio.h>
#include <string.h>

#include "census_print.h"
#include "print.h"

enum { LEAST_NS = 1000000000 };

// It runs, or a coroutine of a language sleeps on its thread: only the language's own loop may do so.
static bool holds_thread(const gp_dataset_t *dataset, const gp_census_record_t *record, uint32_t coro, uint32_t stack)
{
    if (coro == GP_INDEX_NONE || dataset->coros[coro].record.kind == GP_CORO_THREAD || record->state_ns < LEAST_NS)
        return false;
    return record->state == GP_CENSUS_RUNNING ||
           (record->state == GP_CENSUS_BLOCKED && stack != 0 && dataset->stacks[stack].depth > 0 &&
            GP_LOC_MODULE(dataset->stacks[stack].frames[0]) == GP_MODULE_LANGUAGE &&
            strcmp(dataset->coros[coro].record.name, "[hub]") != 0);
}

// What a program hangs in as it is killed, or left, is what its capture is read for.
static void print_held(const gp_source_t *source, const gp_census_record_t *record)
{
    const gp_dataset_t *dataset = source->dataset;
    char name[256];
    uint32_t coro = gp_dataset_coro_find(dataset, record->coro_id);
    uint32_t stack = gp_id_map_find(&dataset->stack_map, record->stack_id);
    stack = stack != GP_INDEX_NONE ? stack : 0;
    if (!holds_thread(dataset, record, coro, stack))
        return;
    gp_report_coro_label(dataset, coro, source->symbolizer, true, name, sizeof(name));
    printf("  held       by ");
    gp_print_text(name);
    printf(", which kept its thread for ");
    gp_print_seconds(record->state_ns, 0);
    printf(" s up to ");
    gp_print_seconds(record->time_ns, 0);
    printf(" s%s", stack != 0 ? ", in " : "");
    gp_census_print_place(source, stack);
    printf("; 'greenprof coroutines' has the stacks\n");
}

void gp_census_print_held(const gp_source_t *source)
{
    const gp_dataset_t *dataset = source->dataset;
    if (dataset->summary.ended && (dataset->end_reason == GP_END_EXIT || dataset->end_reason == GP_END_EXEC))
        return;
    for (size_t i = 0; i < dataset->census_count; i++)
        print_held(source, &dataset->census[i]);
}
