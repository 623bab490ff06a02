// SPDX-License-Identifier: MIT
// The requests of a page: the slowest, where there are many.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"

enum { FLAG_ABOUT = 1, FLAG_CUT = 2, FLAG_FAILED = 4 };

typedef struct ranked {
    uint64_t latency_ns, start_ns;
    uint32_t number;
} ranked_t;

static int request_rows_by_latency(const void *left, const void *right)
{
    const ranked_t *a = left, *b = right;
    if (a->latency_ns != b->latency_ns)
        return a->latency_ns > b->latency_ns ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int request_rows_by_start(const void *left, const void *right)
{
    const ranked_t *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static void request_rows_put(gp_page_writer_t *writer, const gp_request_t *request)
{
    const gp_ledger_t *ledger = &request->ledger;
    const gp_dataset_span_t *span =
        request->span != GP_INDEX_NONE ? &writer->dataset->spans.items[request->span] : NULL;
    const uint64_t row[] = {
        gp_page_trace(writer, request->trace),
        request->endpoint,
        gp_page_coro(writer, request->coro),
        request->start_ns,
        request->end_ns - request->start_ns,
        ledger->cpu_ns,
        ledger->ready_ns,
        ledger->parked_ns,
        ledger->waiting_ns,
        gp_ledger_kind_ns(ledger, GP_KIND_BLOCKED) + gp_ledger_kind_ns(ledger, GP_KIND_GIL) +
            gp_ledger_kind_ns(ledger, GP_KIND_LOCK),
        gp_ledger_kind_ns(ledger, GP_KIND_PREEMPTED),
        ledger->longest_ns,
        request->coros,
        (request->is_about ? FLAG_ABOUT : 0u) | (request->is_cut ? FLAG_CUT : 0u) |
            (span != NULL && span->is.flags & GP_SPAN_FAILED ? FLAG_FAILED : 0u),
    };
    gp_page_table_row(&writer->tables[GP_PAGE_REQUESTS], row);
}

static size_t request_rows_collect(const gp_page_t *page, ranked_t *ranked)
{
    size_t count = 0;
    for (size_t i = 0; i < page->requests->count; i++) {
        const gp_request_t *request = &page->requests->items[i];
        if (page->chosen[i])
            ranked[count++] = (ranked_t){request->end_ns - request->start_ns, request->start_ns, (uint32_t)i};
    }
    return count;
}

// As many as have room with their critical paths.
static size_t request_rows_limit_of(const gp_page_t *page, size_t all)
{
    size_t rows = page->paths != NULL ? page->paths->row_count : 0;
    size_t most = rows > GP_PAGE_ROWS_MAX ? (size_t)((double)all * GP_PAGE_ROWS_MAX / (double)rows) + 1 : all;
    return most < GP_PAGE_REQUESTS_MAX ? most : GP_PAGE_REQUESTS_MAX;
}

int gp_page_requests(gp_page_writer_t *writer)
{
    const gp_requests_t *requests = writer->page != NULL ? writer->page->requests : NULL;
    gp_page_table_begin(
        &writer->tables[GP_PAGE_REQUESTS], "request",
        "trace endpoint coro d:start latency cpu ready parked waiting blocked preempted longest coros flags");
    if (requests == NULL)
        return 0;
    ranked_t *ranked = malloc((requests->count + 1) * sizeof(*ranked));
    writer->requests = calloc(requests->count + 1, sizeof(*writer->requests));
    if (ranked == NULL || writer->requests == NULL) {
        free(ranked);
        return -ENOMEM;
    }
    size_t all = request_rows_collect(writer->page, ranked), count = request_rows_limit_of(writer->page, all);
    count = count < all ? count : all;
    qsort(ranked, all, sizeof(*ranked), request_rows_by_latency);
    qsort(ranked, count, sizeof(*ranked), request_rows_by_start);
    for (size_t i = 0; i < count; i++) {
        writer->requests[ranked[i].number] = (uint32_t)i + 1;
        request_rows_put(writer, &requests->items[ranked[i].number]);
    }
    if (count < all)
        gp_page_note(writer, "Of %zu requests, the %zu slowest are listed; the endpoints' numbers are those of all.",
                     all, count);
    free(ranked);
    return 0;
}
