// SPDX-License-Identifier: MIT
// Threads that wait for each other's locks: circles of holders in the latest census.
//
// Model: a thread asleep for a lock waits for one other thread, its holder. Where going from holder to holder comes
// back, and no wait on the way has an end of its own, none of these threads goes on by itself. Threads are looked at
// one after the other: all must have waited by the first look, as otherwise the circle may be of parts that never met.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain_parts.h"
#include "report/lock_waits.h"

enum {
    LEAST_NS = 100000000,
    TEXT = 700,
    LEAST_ROOM = 200
}; // asleep for less: the census is of threads at different moments

typedef struct waiting {        // of a census' record
    uint32_t coro, stack, next; // next: number of the holder's record; GP_INDEX_NONE = not known
    uint32_t visit;
    gp_lock_names_t names;
    uint64_t time_ns, state_ns;
} waiting_t;

typedef struct census_index {
    gp_lock_holders_t holders;
    uint32_t *records; // uint32_t[coroutines]: number of its record in the census; GP_INDEX_NONE = it has none
} census_index_t;

static void explain_deadlocks_look(const gp_explaining_t *explaining, const census_index_t *index,
                                   const gp_census_record_t *record, waiting_t *waiting)
{
    const gp_dataset_t *dataset = explaining->dataset;
    uint32_t stack = gp_dataset_stack_find(dataset, record->stack_id);
    *waiting = (waiting_t){.coro = gp_dataset_coro_find(dataset, record->coro_id),
                           .stack = stack != GP_INDEX_NONE ? stack : 0,
                           .next = GP_INDEX_NONE,
                           .time_ns = record->time_ns,
                           .state_ns = record->state_ns};
    if (record->state != GP_CENSUS_BLOCKED || waiting->stack == 0 || record->state_ns < LEAST_NS)
        return;
    waiting->names = gp_lock_names_of(dataset, explaining->symbolizer, waiting->stack);
    if (waiting->names.holder == 0 || waiting->names.lock == 0 || waiting->names.is_timed)
        return;
    const char *name = gp_report_loc_name(dataset, explaining->symbolizer, waiting->names.holder);
    uint32_t holder = gp_lock_holder(&index->holders, name, record->time_ns);
    waiting->next = holder != GP_INDEX_NONE ? index->records[holder] : GP_INDEX_NONE;
}

static size_t explain_deadlocks_tell(const gp_explaining_t *explaining, const waiting_t *waiting, char *text,
                                     size_t size, gp_finding_t *code)
{
    char name[128], place[384];
    const gp_dataset_t *dataset = explaining->dataset;
    const char *lock = gp_report_loc_name(dataset, explaining->symbolizer, waiting->names.lock);
    gp_report_coro_label(dataset, waiting->coro, explaining->symbolizer, false, name, sizeof(name));
    gp_explain_place_of(explaining, &dataset->facts.stacks.items[waiting->stack], waiting->names.count, code);
    int length = snprintf(text, size, "%s waits in %s for %s", name, gp_explain_code(code, place, sizeof(place)), lock);
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

static bool explain_deadlocks_is_at_once(const waiting_t *all, uint32_t first)
{
    uint64_t begun_ns = 0, looked_ns = UINT64_MAX;
    uint32_t at = first;
    do {
        uint64_t from_ns = all[at].time_ns > all[at].state_ns ? all[at].time_ns - all[at].state_ns : 0;
        begun_ns = from_ns > begun_ns ? from_ns : begun_ns;
        looked_ns = all[at].time_ns < looked_ns ? all[at].time_ns : looked_ns;
        at = all[at].next;
    } while (at != first);
    return begun_ns <= looked_ns;
}

// The circle from a record on; a long one is not told to its end.
static void explain_deadlocks_say(gp_explaining_t *explaining, const waiting_t *all, uint32_t first)
{
    char text[TEXT] = "";
    size_t length = 0, count = 0;
    uint64_t least_ns = UINT64_MAX, sum_ns = 0;
    gp_finding_t code = {.line = 0}, other;
    for (uint32_t at = first;; at = all[at].next) {
        other = (gp_finding_t){.line = 0};
        if (length + LEAST_ROOM < sizeof(text)) {
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s", count > 0 ? ", which " : "");
            length += explain_deadlocks_tell(explaining, &all[at], text + length, sizeof(text) - length, &other);
        }
        code = count == 0 ? other : code;
        least_ns = all[at].state_ns < least_ns ? all[at].state_ns : least_ns;
        sum_ns += all[at].state_ns;
        count++;
        if (all[at].next == first)
            break;
    }
    gp_finding_t *finding = gp_explain_add(explaining, "deadlock", sum_ns);
    if (finding == NULL)
        return;
    char since[32];
    gp_explain_about(finding, &code);
    finding->times = count;
    snprintf(finding->sentence, sizeof(finding->sentence),
             "deadlock, for %s: %s; each has what the one before waits for, and they cannot be woken",
             gp_explain_time(least_ns, since), text);
    snprintf(finding->hurt, sizeof(finding->hurt), "%zu threads, and whoever waits for them", count);
    snprintf(finding->sure, sizeof(finding->sure),
             "owners are as the locks have them, and all waited at the same moment");
    snprintf(finding->show, sizeof(finding->show), "coroutines");
}

static uint32_t *explain_deadlocks_records(const gp_dataset_t *dataset)
{
    uint32_t *records = malloc((dataset->facts.coros.count + 1) * sizeof(*records));
    for (size_t i = 0; records != NULL && i < dataset->facts.coros.count; i++)
        records[i] = GP_INDEX_NONE;
    for (size_t i = dataset->census.count; records != NULL && i > 0; i--) {
        uint32_t coro = gp_dataset_coro_find(dataset, dataset->census.items[i - 1].coro_id);
        if (coro != GP_INDEX_NONE)
            records[coro] = (uint32_t)i - 1;
    }
    return records;
}

int gp_explain_deadlocks(gp_explaining_t *explaining)
{
    const gp_dataset_t *dataset = explaining->dataset;
    size_t count = explaining->trace == 0 ? dataset->census.count : 0;
    if (count == 0)
        return 0;
    waiting_t *all = calloc(count, sizeof(*all));
    census_index_t index = {.records = explain_deadlocks_records(dataset)};
    int result = all != NULL && index.records != NULL ? gp_lock_holders_make(&index.holders, dataset) : -ENOMEM;
    count = result == 0 ? count : 0;
    for (size_t i = 0; i < count; i++)
        explain_deadlocks_look(explaining, &index, &dataset->census.items[i], &all[i]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at != GP_INDEX_NONE && all[at].visit == 0; at = all[at].next)
            all[at].visit = i + 1;
        // Back at a record of this walk; of one alone only another thread could have made the two.
        if (at != GP_INDEX_NONE && all[at].visit == i + 1 && all[at].next != at &&
            explain_deadlocks_is_at_once(all, at))
            explain_deadlocks_say(explaining, all, at);
    }
    free(all);
    free(index.records);
    gp_lock_holders_free(&index.holders);
    return result;
}
