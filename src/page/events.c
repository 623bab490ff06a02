// SPDX-License-Identifier: MIT
// Single events of a page: critical paths of the slowest requests, spans, long slices and those that had to wait.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"

enum { SPAN_FAILED = 1, SPAN_OPEN = 2 };

// --- critical paths

typedef struct ranked { // a request, and its segments
    uint64_t latency_ns;
    uint32_t first, count;
} ranked_t;

static int events_by_latency(const void *left, const void *right)
{
    const ranked_t *a = left, *b = right;
    if (a->latency_ns != b->latency_ns)
        return a->latency_ns > b->latency_ns ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static int events_by_place(const void *left, const void *right)
{
    const ranked_t *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

static size_t events_rank(const gp_page_writer_t *writer, ranked_t *ranked)
{
    const gp_page_t *page = writer->page;
    size_t count = 0;
    for (size_t i = 0; i < page->segment_count; i++) {
        uint32_t number = page->segments[i].request;
        const gp_request_t *request = &page->requests->items[number];
        if (i == 0 || number != page->segments[i - 1].request)
            ranked[count++] = (ranked_t){request->end_ns - request->start_ns, (uint32_t)i, 0};
        ranked[count - 1].count++;
    }
    return count;
}

static int events_put_segments(gp_page_writer_t *writer, gp_frame_map_t *map, const ranked_t *ranked)
{
    const gp_page_t *page = writer->page;
    for (uint32_t i = 0; i < ranked->count; i++) {
        const gp_page_segment_t *segment = &page->segments[ranked->first + i];
        const gp_timed_stack_t *stack = &page->stacks[segment->stack];
        uint32_t node = gp_nodes_stack(&writer->nodes, map, stack->frames, stack->depth);
        if (node == GP_INDEX_NONE)
            return -ENOMEM;
        if (writer->requests[segment->request] == 0)
            continue;
        const uint64_t row[] = {
            writer->requests[segment->request] - 1,  segment->from_ns, segment->to_ns - segment->from_ns,
            gp_page_coro(writer, segment->coro) - 1, segment->state,   (uint64_t)writer->nodes.order[node] + 1,
        };
        gp_page_table_row(&writer->tables[GP_PAGE_SEGMENTS], row);
    }
    return 0;
}

// Nodes of segments' stacks. Rows of critical paths have most of them; segments divided among the coroutines that kept
// the thread need their own.
static int events_find_nodes(gp_page_writer_t *writer, gp_frame_map_t *map)
{
    for (uint32_t i = 0; i < writer->page->stack_count; i++) {
        const gp_timed_stack_t *stack = &writer->page->stacks[i];
        if (gp_nodes_stack(&writer->nodes, map, stack->frames, stack->depth) == GP_INDEX_NONE)
            return -ENOMEM;
    }
    return 0;
}

// The slowest requests' segments, request by request.
static int events_choose_segments(gp_page_writer_t *writer, gp_frame_map_t *map)
{
    size_t all = 0, chosen = 0, sum = 0;
    ranked_t *ranked = malloc((writer->page->segment_count + 1) * sizeof(*ranked));
    if (ranked == NULL)
        return -ENOMEM;
    all = events_rank(writer, ranked);
    qsort(ranked, all, sizeof(*ranked), events_by_latency);
    while (chosen < all && sum + ranked[chosen].count <= GP_PAGE_SEGMENTS_MAX)
        sum += ranked[chosen++].count;
    qsort(ranked, chosen, sizeof(*ranked), events_by_place);
    int result = 0;
    for (size_t i = 0; i < chosen && result == 0; i++)
        result = events_put_segments(writer, map, &ranked[i]);
    if (chosen < all)
        gp_page_note(writer, "The critical paths of the %zu slowest requests are in the timeline, of %zu.", chosen,
                     all);
    free(ranked);
    return result;
}

int gp_page_segments(gp_page_writer_t *writer)
{
    const gp_page_t *page = writer->page;
    gp_frame_map_t map = {0};
    gp_page_table_begin(&writer->tables[GP_PAGE_SEGMENTS], "segment", "d:request d:from length coro state node");
    bool any = page != NULL && page->paths != NULL && page->segment_count > 0;
    int result = any ? gp_frame_map_init(&map, page->paths) : 0;
    if (result == 0 && any)
        result = events_find_nodes(writer, &map);
    if (result == 0)
        result = gp_nodes_finish(&writer->nodes);
    if (result == 0 && any)
        result = events_choose_segments(writer, &map);
    gp_frame_map_free(&map);
    return result;
}

// --- spans

static uint64_t events_span_number(const uint32_t *numbers, uint32_t span)
{
    return span != GP_INDEX_NONE ? numbers[span] : 0;
}

static uint32_t events_owner_of(const gp_page_writer_t *writer, const gp_dataset_span_t *span)
{
    uint32_t owner =
        gp_requests_owner(writer->dataset, writer->page->requests, span->trace, span->coro, span->is.start);
    return owner != GP_INDEX_NONE ? writer->requests[owner] : 0;
}

static void events_put_span(gp_page_writer_t *writer, const gp_dataset_span_t *span, const uint32_t *numbers)
{
    const gp_ledger_t *ledger = &span->is.times;
    const uint64_t row[] = {
        events_owner_of(writer, span),
        events_span_number(numbers, span->parent),
        gp_page_coro(writer, span->coro),
        gp_page_trace(writer, span->trace),
        gp_string_table_number(&writer->nodes.names, gp_span_kind_text(span->is.kind)),
        gp_string_table_number(&writer->nodes.names, span->name),
        span->is.start,
        span->is.end - span->is.start,
        (span->is.flags & GP_SPAN_FAILED ? SPAN_FAILED : 0u) | (span->is.flags & GP_SPAN_OPEN ? SPAN_OPEN : 0u),
        ledger->cpu_ns,
        ledger->ready_ns,
        ledger->parked_ns,
        ledger->blocked_ns,
    };
    gp_page_table_row(&writer->tables[GP_PAGE_SPANS], row);
}

int gp_page_spans(gp_page_writer_t *writer)
{
    const gp_dataset_t *dataset = writer->dataset;
    gp_page_table_begin(&writer->tables[GP_PAGE_SPANS], "span",
                        "request parent coro trace kind name d:start length flags cpu ready parked blocked");
    if (dataset == NULL || writer->page->requests == NULL || dataset->spans.count == 0)
        return 0;
    uint32_t *numbers = calloc(dataset->spans.count, sizeof(*numbers)), count = 0;
    if (numbers == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->spans.count && count < GP_PAGE_SPANS_MAX; i++)
        if (events_owner_of(writer, &dataset->spans.items[i]) != 0)
            numbers[i] = ++count;
    for (size_t i = 0; i < dataset->spans.count; i++)
        if (numbers[i] != 0)
            events_put_span(writer, &dataset->spans.items[i], numbers);
    if (count == GP_PAGE_SPANS_MAX)
        gp_page_note(writer, "There are %zu spans; the first %u are shown.", dataset->spans.count, count);
    free(numbers);
    return 0;
}

// --- long slices

static void events_put_hog(gp_page_writer_t *writer, const gp_dataset_hog_t *hog, uint64_t delay_ns, uint64_t victims)
{
    const uint64_t row[] = {
        gp_page_coro(writer, hog->coro) - 1,
        gp_page_thread(writer, hog->thread),
        gp_page_trace(writer, hog->trace),
        hog->start_ns,
        hog->duration_ns,
        delay_ns,
        victims,
    };
    gp_page_table_row(&writer->tables[GP_PAGE_HOGS], row);
}

int gp_page_hogs(gp_page_writer_t *writer)
{
    const gp_dataset_t *dataset = writer->dataset;
    gp_page_table_begin(&writer->tables[GP_PAGE_HOGS], "hog", "coro thread trace d:start length delay victims");
    gp_page_table_begin(&writer->tables[GP_PAGE_VICTIMS], "victim", "hog coro trace delay");
    if (dataset == NULL || dataset->hogs.count == 0)
        return 0;
    uint64_t *sums = calloc(2 * dataset->hogs.count, sizeof(*sums));
    if (sums == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->delays.count; i++) {
        const gp_dataset_delay_t *delay = &dataset->delays.items[i];
        const uint64_t row[] = {delay->hog, gp_page_coro(writer, delay->coro) - 1, gp_page_trace(writer, delay->trace),
                                delay->delay_ns};
        gp_page_table_row(&writer->tables[GP_PAGE_VICTIMS], row);
        sums[2 * delay->hog] += delay->delay_ns;
        sums[2 * delay->hog + 1]++;
    }
    for (size_t i = 0; i < dataset->hogs.count; i++)
        events_put_hog(writer, &dataset->hogs.items[i], sums[2 * i], sums[2 * i + 1]);
    free(sums);
    return 0;
}
