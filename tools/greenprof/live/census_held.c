// SPDX-License-Identifier: MIT
#include "census_held.h"

#include <stdio.h>

#include "census_print.h"
#include "print.h"
#include "report/long_slices.h"

enum { LEAST_NS = 1000000000, SHOWN = 3, AT_ONCE_NS = 1000000 };

static uint32_t census_held_stack_of(const gp_dataset_t *dataset, const gp_census_record_t *record)
{
    uint32_t stack = gp_dataset_stack_find(dataset, record->stack_id);
    return stack != GP_INDEX_NONE ? stack : 0;
}

static bool census_held_is_of_thread(const gp_dataset_t *dataset, uint32_t coro)
{
    return coro == GP_INDEX_NONE || dataset->facts.coros.items[coro].record.kind == GP_CORO_THREAD;
}

// Does anything else wait for the thread? A pool's thread is there to be kept: what calls the jobs waits for each of
// them, from its beginning on, and for nothing else. The only coroutine that there is may keep its thread as well.
static bool census_held_keeps_others(const gp_dataset_t *dataset, const gp_census_record_t *holder)
{
    bool is_alone = true;
    for (size_t i = 0; i < dataset->census.count; i++) {
        const gp_census_record_t *other = &dataset->census.items[i];
        bool waits = other->state == GP_CENSUS_WAITING || other->state == GP_CENSUS_PARKED ||
                     other->state == GP_CENSUS_READY || other->state == GP_CENSUS_NEW;
        uint64_t apart_ns = other->state_ns > holder->state_ns ? other->state_ns - holder->state_ns
                                                               : holder->state_ns - other->state_ns;
        if (other == holder || census_held_is_of_thread(dataset, gp_dataset_coro_find(dataset, other->coro_id)))
            continue;
        is_alone = false;
        if (waits && ((other->thread == holder->thread && apart_ns > AT_ONCE_NS) ||
                      (other->thread == 0 && holder->state == GP_CENSUS_RUNNING)))
            return true;
    }
    return is_alone;
}

typedef struct holder {
    uint32_t coro;
    bool has_frame;
    gp_census_frame_t frame;
} holder_t;

static bool census_held_is_holder(const gp_input_t *source, const gp_census_record_t *record, holder_t *holder)
{
    const gp_dataset_t *dataset = source->dataset;
    holder->coro = gp_dataset_coro_find(dataset, record->coro_id);
    bool runs = record->state == GP_CENSUS_RUNNING, sleeps = record->state == GP_CENSUS_BLOCKED;
    if (record->state_ns < LEAST_NS || !(runs || sleeps) || census_held_is_of_thread(dataset, holder->coro) ||
        !census_held_keeps_others(dataset, record))
        return false;
    uint32_t stack = census_held_stack_of(dataset, record);
    holder->has_frame = gp_census_innermost(source, stack, &holder->frame);
    return runs || (holder->has_frame && !gp_sleeps_as_loops_do(dataset, source->symbolizer, holder->coro, stack));
}

// in_header: of a report, else of the census itself.
static void census_held_print_holder(const gp_input_t *source, const gp_census_record_t *record, const holder_t *holder,
                                     bool in_header)
{
    char name[256];
    gp_report_coro_label(source->dataset, holder->coro, source->symbolizer, true, name, sizeof(name));
    printf(in_header ? "  held       by " : "A thread is held by ");
    gp_print_text(name);
    printf(in_header ? ", which kept its thread for at least " : ", for at least ");
    gp_print_seconds(record->state_ns, 0);
    printf(" s");
    if (in_header) {
        printf(", up to ");
        gp_print_seconds(record->time_ns, 0);
        printf(" s");
    }
    printf("%s", holder->has_frame ? ", in " : "");
    gp_census_print_frame(&holder->frame);
    printf(in_header ? "; 'greenprof coroutines' has the stacks\n" : "\n");
}

// The place where a program hangs when it is killed, or left: for this its capture is read.
void gp_census_print_held(const gp_input_t *source, bool in_header)
{
    const gp_dataset_t *dataset = source->dataset;
    size_t count = 0;
    if (dataset->summary.ended &&
        (dataset->facts.end.reason == GP_END_EXIT || dataset->facts.end.reason == GP_END_EXEC))
        return;
    for (size_t i = 0; i < dataset->census.count; i++) {
        holder_t holder;
        if (census_held_is_holder(source, &dataset->census.items[i], &holder) && count++ < SHOWN)
            census_held_print_holder(source, &dataset->census.items[i], &holder, in_header);
    }
    if (count > SHOWN)
        printf("%s%zu more threads\n", in_header ? "  held       " : "So are ", count - SHOWN);
}
