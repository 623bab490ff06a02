// SPDX-License-Identifier: MIT
// All that a page shows of a capture: the samples of the wall clock apart by owner and by tick, delays, critical paths.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain.h"
#include "report/sample_rows.h"

// Ticks: enough to choose a part of the time, few enough for rows of many samples each.
enum { TICKS_MAX = 1000, TICKS_MIN = 10, ROWS_WANTED = 2000000 };

// Options of a page's readings: its data depend on the chosen traces, coroutines and stacks, not on the first view.
static gp_report_options_t report_page_options_of(const gp_report_options_t *options, gp_measure_t measure,
                                                  unsigned wants, gp_page_t *page)
{
    gp_report_options_t one = *options;
    one.by = measure == GP_MEASURE_LATENCY ? GP_BY_CRITICAL_PATH : GP_BY_NONE;
    one.stitch = false; // the page does it
    one.measure = measure;
    one.wants = wants;
    one.sums = NULL;
    one.requests = page->requests;
    one.requests_chosen = page->chosen;
    one.path_sums = NULL;
    one.path_taker = NULL;
    one.tick_ns = page->tick_ns;
    one.page = page;
    return one;
}

static uint64_t report_page_tick_of(const gp_dataset_t *dataset)
{
    uint64_t stacks = dataset->facts.stacks.count > 0 ? dataset->facts.stacks.count : 1, ticks = ROWS_WANTED / stacks;
    ticks = ticks > TICKS_MAX ? TICKS_MAX : ticks < TICKS_MIN ? TICKS_MIN : ticks;
    uint64_t tick = dataset->facts.end_ns / ticks + 1, round = 1;
    while (round * 10 <= tick)
        round *= 10;
    return (tick + round - 1) / round * round; // a digit, then zeros
}

// Requests are chosen by their trace, and by the coroutine that they began on.
static int report_page_choose(gp_page_t *page, const gp_report_options_t *options, bool *any)
{
    bool *chosen = calloc(page->requests->count + 1, sizeof(*chosen));
    *any = false;
    if (chosen == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < page->requests->count; i++) {
        const gp_request_t *request = &page->requests->items[i];
        const gp_dataset_share_t share = {.coro = request->coro, .trace = request->trace};
        *any |= chosen[i] = gp_selection_has_share(&options->selection, &share);
    }
    page->chosen = chosen;
    return 0;
}

// The stacks at which coroutines were spawned, with frames of the report's.
static int report_page_add_spawns(gp_page_t *page, gp_report_t *report)
{
    const gp_dataset_t *dataset = page->dataset;
    gp_builder_t *builder = (gp_builder_t *)report;
    gp_timed_stack_t *spawns = gp_arena_alloc(&builder->arena, (dataset->facts.coros.count + 1) * sizeof(*spawns));
    int result = spawns != NULL ? 0 : -ENOMEM;
    page->spawns = spawns;
    for (size_t i = 0; i < dataset->facts.coros.count && result == 0; i++) {
        uint32_t stack = dataset->facts.coros.items[i].spawn_stack;
        if (stack == 0)
            continue;
        gp_builder_row_begin(builder);
        result = gp_sample_rows_add_stack(builder->pass, &dataset->facts.stacks.items[stack]);
        uint32_t path = result == 0 ? gp_builder_path(builder) : GP_INDEX_NONE;
        if (path == GP_INDEX_NONE)
            return -ENOMEM;
        spawns[i] = (gp_timed_stack_t){builder->paths[path].frames, builder->paths[path].depth};
    }
    report->frames = builder->frames;
    report->frame_count = (uint32_t)builder->frame_count;
    return result;
}

typedef struct page_parts { // of a page, which are made of one reading
    gp_making_t *rows, *delays, *paths;
    gp_explaining_t *explaining; // NULL = there is nothing to explain, or no memory for it
} page_parts_t;

static int report_page_begin_parts(gp_page_t *page, const gp_report_options_t *options, page_parts_t *parts,
                                   gp_reading_t *reading)
{
    const gp_report_options_t rows =
        report_page_options_of(options, GP_MEASURE_WALL, GP_WANT_LABELS | GP_WANT_TIMELINE, page);
    const gp_report_options_t delays = report_page_options_of(options, GP_MEASURE_DELAY, GP_WANT_LABELS, page);
    uint32_t explained = gp_explain_trace_beside(page->dataset, options);
    bool any;
    if (explained != GP_INDEX_NONE)
        parts->explaining = gp_explain_begin(page->dataset, page->symbolizer, explained, reading);
    parts->rows = gp_report_begin(page->dataset, &rows, page->symbolizer, reading);
    parts->delays = parts->rows != NULL ? gp_report_begin(page->dataset, &delays, page->symbolizer, reading) : NULL;
    page->requests = parts->delays != NULL ? gp_requests_begin(page->dataset, true, reading) : NULL;
    if (page->requests == NULL || report_page_choose(page, options, &any) < 0)
        return -ENOMEM;
    if (!any || options->selection.threads != NULL) // no thread chooses a request
        return 0;
    const gp_report_options_t paths = report_page_options_of(options, GP_MEASURE_LATENCY, GP_WANT_LABELS, page);
    parts->paths = gp_report_begin(page->dataset, &paths, page->symbolizer, reading);
    return parts->paths != NULL ? 0 : -ENOMEM;
}

// Each is ended, also where another one failed. Returns the rows, NULL where one is missing.
static gp_report_t *report_page_end_parts(gp_page_t *page, page_parts_t *parts, int result)
{
    bool has_paths = parts->paths != NULL;
    page->findings = parts->explaining != NULL ? gp_explain_end(parts->explaining, result) : NULL;
    gp_report_t *report = parts->rows != NULL ? gp_report_end(parts->rows, result) : NULL;
    int more = report != NULL ? report_page_add_spawns(page, report) : -ENOMEM;
    page->delays = parts->delays != NULL ? gp_report_end(parts->delays, more) : NULL;
    more = page->delays != NULL && page->requests != NULL ? gp_requests_end((gp_requests_t *)page->requests) : -ENOMEM;
    page->paths = has_paths ? gp_report_end(parts->paths, more) : NULL;
    if (more == 0 && (page->paths != NULL || !has_paths))
        return report;
    gp_report_free(report);
    return NULL;
}

gp_report_t *gp_report_with_page(const gp_dataset_t *dataset, const gp_report_options_t *options,
                                 gp_symbolizer_t *symbolizer)
{
    gp_page_t *page = calloc(1, sizeof(*page));
    page_parts_t parts = {0};
    gp_reading_t reading = {0};
    if (page == NULL)
        return NULL;
    page->dataset = dataset;
    page->tick_ns = report_page_tick_of(dataset);
    page->symbolizer = symbolizer;
    page->first_measure = options->measure;
    int result = report_page_begin_parts(page, options, &parts, &reading);
    if (result == 0)
        result = gp_dataset_read(dataset, &reading);
    gp_report_t *report = report_page_end_parts(page, &parts, result);
    if (report != NULL) {
        report->page = page;
        return report;
    }
    gp_page_free(page);
    errno = result < 0 ? -result : ENOMEM;
    return NULL;
}

void gp_page_free(gp_page_t *page)
{
    if (page == NULL)
        return;
    gp_report_free(page->delays);
    gp_report_free(page->paths);
    gp_findings_free(page->findings);
    gp_requests_free((gp_requests_t *)page->requests);
    free((bool *)page->chosen);
    free(page);
}
