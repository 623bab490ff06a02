// SPDX-License-Identifier: MIT
// The coroutines of a page: those with most time each by itself, the others folded by name.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"
#include "report/report_options.h"

enum { FLAG_THREAD = 1, FLAG_FOLDED = 2 };
enum { ENTRY_SIZE = 4096 }; // bytes of a first function's name; the rest is cut off
enum { NAMES_MAX = 1000 };  // of those that are folded

typedef struct ranked {
    uint64_t ns;
    uint32_t coro;
} ranked_t;

static int coros_by_time(const void *left, const void *right)
{
    const ranked_t *a = left, *b = right;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a->coro < b->coro ? -1 : a->coro > b->coro;
}

static int coros_by_number(const void *left, const void *right)
{
    const ranked_t *a = left, *b = right;
    return a->coro < b->coro ? -1 : a->coro > b->coro;
}

// The text of a coroutine: a thread's own with its brackets.
static uint32_t coros_name_of(gp_page_writer_t *writer, uint32_t coro)
{
    const gp_dataset_t *dataset = writer->dataset;
    char text[256];
    bool is_thread = dataset->facts.coros.items[coro].record.kind == GP_CORO_THREAD;
    gp_report_coro_label(dataset, coro, writer->page->symbolizer, !is_thread, text, sizeof(text));
    return gp_string_table_number(&writer->coro_names, text);
}

static void coros_put_coro(gp_page_writer_t *writer, uint32_t coro, const gp_ledger_t *ledger, uint32_t name,
                           unsigned flags)
{
    const gp_dataset_t *dataset = writer->dataset;
    const gp_facts_coro_t *one = flags & FLAG_FOLDED ? NULL : &dataset->facts.coros.items[coro];
    uint32_t parent = one != NULL ? gp_dataset_coro_find(dataset, one->record.parent_id) : GP_INDEX_NONE;
    char entry[ENTRY_SIZE];
    bool has_entry = one != NULL && gp_report_coro_entry(dataset, coro, writer->page->symbolizer, entry, sizeof(entry));
    const uint64_t row[] = {
        one != NULL ? one->record.id : 0,
        name,
        has_entry ? (uint64_t)gp_string_table_number(&writer->nodes.names, entry) + 1 : 0,
        one != NULL && one->record.parent_id != 0 ? gp_page_coro(writer, parent) : 0,
        one != NULL && writer->spawns[coro] != 0 ? (uint64_t)writer->nodes.order[writer->spawns[coro] - 1] + 1 : 0,
        flags | (one != NULL && one->record.kind == GP_CORO_THREAD ? FLAG_THREAD : 0u),
        ledger->cpu_ns,
        ledger->ready_ns,
        ledger->parked_ns,
        ledger->waiting_ns,
        gp_ledger_kind_ns(ledger, GP_KIND_BLOCKED) + gp_ledger_kind_ns(ledger, GP_KIND_GIL) +
            gp_ledger_kind_ns(ledger, GP_KIND_LOCK),
        gp_ledger_kind_ns(ledger, GP_KIND_PREEMPTED),
        ledger->longest_ns,
        ledger->switches,
    };
    gp_page_table_row(&writer->tables[GP_PAGE_COROS], row);
}

static size_t coros_find(const gp_page_coros_t *coros, uint32_t name)
{
    size_t number = 0;
    while (number < coros->folded_count && coros->folded[number].name != name)
        number++;
    return number;
}

static int coros_fold(gp_page_writer_t *writer, uint32_t coro)
{
    gp_page_coros_t *coros = &writer->coros;
    uint32_t name = coros_name_of(writer, coro);
    size_t number = coros_find(coros, name);
    if (number == coros->folded_count && number >= NAMES_MAX) {
        name = gp_string_table_number(&writer->coro_names, "other names");
        number = coros_find(coros, name);
    }
    if (number == coros->folded_count) {
        if (gp_grow(&coros->folded, &coros->folded_capacity, number, sizeof(*coros->folded)) < 0)
            return -ENOMEM;
        coros->folded[coros->folded_count++] = (gp_page_folded_t){.name = name};
    }
    gp_ledger_add(&coros->folded[number].ledger, &writer->dataset->coros.items[coro].ledger);
    coros->numbers[coro] = (uint32_t)(coros->own + number) + 1;
    return 0;
}

static int coros_fold_others(gp_page_writer_t *writer, const ranked_t *others, size_t count)
{
    size_t own = writer->coros.own;
    for (size_t i = 0; i < count; i++)
        if (coros_fold(writer, others[i].coro) < 0)
            return -ENOMEM;
    if (count > 0)
        gp_page_note(
            writer,
            "Of %zu coroutines, the %zu with most time are shown each by itself; the others are put together by "
            "name.",
            own + count, own);
    return 0;
}

static ranked_t *coros_rank(const gp_dataset_t *dataset)
{
    ranked_t *ranked = malloc((dataset->facts.coros.count + 1) * sizeof(*ranked));
    for (uint32_t i = 0; i < dataset->facts.coros.count && ranked != NULL; i++) {
        const gp_ledger_t *ledger = &dataset->coros.items[i].ledger;
        ranked[i] = (ranked_t){ledger->slice_ns + ledger->ready_ns + ledger->parked_ns + ledger->waiting_ns, i};
    }
    return ranked;
}

static int coros_make_spawns(gp_page_writer_t *writer)
{
    const gp_dataset_t *dataset = writer->dataset;
    gp_frame_map_t map;
    writer->spawns = calloc(dataset->facts.coros.count + 1, sizeof(*writer->spawns));
    if (writer->spawns == NULL || gp_frame_map_init(&map, writer->report) < 0)
        return -ENOMEM;
    int result = 0;
    for (uint32_t i = 0; i < dataset->facts.coros.count && result == 0; i++) {
        const gp_timed_stack_t *spawn = &writer->page->spawns[i];
        if (spawn->depth == 0)
            continue;
        uint32_t node = gp_nodes_stack(&writer->nodes, &map, spawn->frames, spawn->depth);
        writer->spawns[i] = node + 1;
        result = node != GP_INDEX_NONE ? 0 : -ENOMEM;
    }
    gp_frame_map_free(&map);
    return result;
}

static int coros_number_all(gp_page_writer_t *writer, ranked_t *ranked, size_t own)
{
    gp_page_coros_t *coros = &writer->coros;
    qsort(ranked, own, sizeof(*ranked), coros_by_number);
    for (size_t i = 0; i < own; i++)
        coros->numbers[ranked[i].coro] = (uint32_t)i + 1;
    coros->own = own;
    int result = coros_fold_others(writer, ranked + own, writer->dataset->facts.coros.count - own);
    return result == 0 ? coros_make_spawns(writer) : result;
}

int gp_page_coros(gp_page_writer_t *writer)
{
    const gp_dataset_t *dataset = writer->dataset;
    if (dataset == NULL)
        return 0;
    ranked_t *ranked = coros_rank(dataset);
    writer->coros.numbers = calloc(dataset->facts.coros.count + 1, sizeof(*writer->coros.numbers));
    int result = ranked != NULL && writer->coros.numbers != NULL ? 0 : -ENOMEM;
    if (result == 0) {
        qsort(ranked, dataset->facts.coros.count, sizeof(*ranked), coros_by_time);
        result = coros_number_all(writer, ranked,
                                  dataset->facts.coros.count < GP_PAGE_COROS_MAX ? dataset->facts.coros.count
                                                                                 : GP_PAGE_COROS_MAX);
    }
    free(ranked);
    return result;
}

void gp_page_put_coros(gp_page_writer_t *writer)
{
    const gp_dataset_t *dataset = writer->dataset;
    gp_page_table_begin(
        &writer->tables[GP_PAGE_COROS], "coro",
        "d:id name entry parent spawn flags cpu ready parked waiting blocked preempted longest switches");
    for (uint32_t i = 0; dataset != NULL && i < dataset->facts.coros.count; i++)
        if (writer->coros.numbers[i] <= writer->coros.own)
            coros_put_coro(writer, i, &dataset->coros.items[i].ledger, coros_name_of(writer, i), 0);
    for (size_t i = 0; i < writer->coros.folded_count; i++)
        coros_put_coro(writer, 0, &writer->coros.folded[i].ledger, writer->coros.folded[i].name, FLAG_FOLDED);
}

uint32_t gp_page_coro(const gp_page_writer_t *writer, uint32_t coro)
{
    return coro != GP_INDEX_NONE && writer->coros.numbers != NULL ? writer->coros.numbers[coro] : 0;
}
