// SPDX-License-Identifier: MIT
#include "report/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPAWNERS_MAX = 64 }; // looked at, of a coroutine

// --- which there are

static bool requests_same_endpoint(const void *owner, uint32_t number, const void *key)
{
    const gp_endpoint_t *a = &((const gp_requests_t *)owner)->endpoints[number], *b = key;
    return a->kind == b->kind && strcmp(a->name, b->name) == 0;
}

static uint32_t requests_endpoint_of(gp_requests_t *requests, uint32_t kind, const char *name)
{
    const gp_endpoint_t key = {.kind = kind, .name = name};
    uint64_t hash = gp_hash_more(gp_hash_bytes(name, strlen(name)), kind);
    uint32_t number = gp_index_find(&requests->endpoint_index, hash, requests_same_endpoint, requests, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&requests->endpoints, &requests->endpoint_capacity, requests->endpoint_count, sizeof(key)) < 0 ||
        gp_index_add(&requests->endpoint_index, hash, (uint32_t)requests->endpoint_count) < 0)
        return GP_INDEX_NONE;
    requests->endpoints[requests->endpoint_count] = key;
    return (uint32_t)requests->endpoint_count++;
}

static int requests_add(gp_requests_t *requests, gp_request_t request, uint32_t kind, const char *name)
{
    request.endpoint = requests_endpoint_of(requests, kind, name);
    if (request.endpoint == GP_INDEX_NONE ||
        gp_grow(&requests->items, &requests->capacity, requests->count, sizeof(request)) < 0)
        return -ENOMEM;
    requests->items[requests->count++] = request;
    return 0;
}

// Not in part: what would be missing of it is not known.
static bool requests_is_whole(const gp_dataset_t *dataset, uint64_t start_ns, uint64_t end_ns)
{
    return !dataset->windowed || (start_ns >= dataset->window.from_ns && end_ns <= dataset->window.to_ns);
}

static int requests_add_spans(gp_requests_t *requests, const gp_dataset_t *dataset)
{
    int result = 0;
    for (size_t i = 0; i < dataset->spans.count && result == 0; i++) {
        const gp_dataset_span_t *span = &dataset->spans.items[i];
        uint32_t end_coro =
            span->is.end_coro_id != 0 ? gp_dataset_coro_find(dataset, span->is.end_coro_id) : GP_INDEX_NONE;
        if (!gp_dataset_is_request(span) || !gp_dataset_has_end(span))
            continue;
        if (!requests_is_whole(dataset, span->is.start, span->is.end)) {
            requests->left_out++;
            continue;
        }
        const gp_request_t request = {
            .span = (uint32_t)i,
            .trace = span->trace,
            .coro = span->coro,
            .end_coro = end_coro != GP_INDEX_NONE ? end_coro : span->coro,
            .is_cut = span->is.flags & GP_SPAN_OPEN,
            .start_ns = span->is.start,
            .end_ns = span->is.end,
        };
        result = requests_add(requests, request, span->is.kind, span->name);
    }
    return result;
}

// Traces of which no request was recorded, or not when it ended: by when coroutines are known to have run for them.
static int requests_add_others(gp_requests_t *requests, const gp_dataset_t *dataset)
{
    bool *has_spans = calloc(dataset->facts.traces.count + 1, sizeof(*has_spans));
    int result = has_spans != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < dataset->spans.count && result == 0; i++)
        has_spans[dataset->spans.items[i].trace] |= gp_dataset_has_end(&dataset->spans.items[i]);
    for (uint32_t i = 1; i < dataset->facts.traces.count && result == 0; i++) {
        uint32_t number = gp_table_find(&dataset->extents.table, dataset->facts.traces.items[i].index);
        if (has_spans[i] || number == GP_INDEX_NONE)
            continue;
        const gp_dataset_extent_t *extent = &dataset->extents.items[number];
        if (!requests_is_whole(dataset, extent->first_ns, extent->last_ns)) {
            requests->left_out++;
            continue;
        }
        const gp_request_t request = {
            .span = GP_INDEX_NONE,
            .trace = i,
            .coro = gp_dataset_coro_find(dataset, extent->coro_id),
            .end_coro = gp_dataset_coro_find(dataset, extent->last_coro_id),
            .is_about = true,
            .start_ns = extent->first_ns,
            .end_ns = extent->last_ns,
        };
        if (request.coro != GP_INDEX_NONE && request.end_coro != GP_INDEX_NONE)
            result = requests_add(requests, request, 0, "");
    }
    free(has_spans);
    return result;
}

static int requests_by_trace(const void *left, const void *right)
{
    const gp_request_t *a = left, *b = right;
    if (a->trace != b->trace)
        return a->trace < b->trace ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->span < b->span ? -1 : a->span > b->span;
}

static int requests_sort(gp_requests_t *requests, const gp_dataset_t *dataset)
{
    requests->first = calloc(dataset->facts.traces.count + 2, sizeof(*requests->first));
    if (requests->first == NULL)
        return -ENOMEM;
    if (requests->count > 0)
        qsort(requests->items, requests->count, sizeof(*requests->items), requests_by_trace);
    for (size_t i = 0; i < requests->count; i++)
        requests->first[requests->items[i].trace + 1]++;
    for (size_t i = 0; i < dataset->facts.traces.count; i++)
        requests->first[i + 1] += requests->first[i];
    return 0;
}

uint32_t gp_requests_owner(const gp_dataset_t *dataset, const gp_requests_t *requests, uint32_t trace, uint32_t coro,
                           uint64_t at_ns)
{
    uint32_t first = requests->first[trace], end = requests->first[trace + 1], latest = GP_INDEX_NONE, found = 0;
    for (uint32_t i = first; i < end && requests->items[i].start_ns <= at_ns; i++) {
        if (at_ns > requests->items[i].end_ns)
            continue;
        latest = i;
        found++;
    }
    for (uint32_t level = 0; found > 1 && coro != GP_INDEX_NONE && level < SPAWNERS_MAX; level++) {
        for (uint32_t i = latest + 1; i > first; i--)
            if (requests->items[i - 1].coro == coro && requests->items[i - 1].start_ns <= at_ns &&
                requests->items[i - 1].end_ns >= at_ns)
                return i - 1;
        uint64_t spawner = dataset->facts.coros.items[coro].record.parent_id;
        coro = spawner != 0 ? gp_dataset_coro_find(dataset, spawner) : GP_INDEX_NONE;
    }
    return latest;
}

// --- what their coroutines did

typedef struct part { // a request's part of a coroutine's work for its trace
    uint32_t share, request;
    gp_ledger_t ledger; // by activities: no CPU time
} part_t;

struct gp_request_parts {
    const gp_dataset_t *dataset;
    gp_requests_t *requests;
    part_t *items;
    size_t count, capacity;
    gp_index_t index;
};
typedef struct gp_request_parts parts_t;

static bool requests_same_part(const void *owner, uint32_t number, const void *key)
{
    const part_t *a = &((const parts_t *)owner)->items[number], *b = key;
    return a->share == b->share && a->request == b->request;
}

static part_t *requests_part_of(parts_t *parts, uint32_t share, uint32_t request)
{
    const part_t key = {.share = share, .request = request};
    uint64_t hash = gp_hash_u64((uint64_t)share << 32 | request);
    uint32_t number = gp_index_find(&parts->index, hash, requests_same_part, parts, &key);
    if (number != GP_INDEX_NONE)
        return &parts->items[number];
    if (gp_grow(&parts->items, &parts->capacity, parts->count, sizeof(key)) < 0 ||
        gp_index_add(&parts->index, hash, (uint32_t)parts->count) < 0)
        return NULL;
    parts->items[parts->count] = key;
    return &parts->items[parts->count++];
}

static uint32_t requests_of(const gp_requests_t *requests, uint32_t trace)
{
    return requests->first[trace + 1] - requests->first[trace];
}

// An activity goes, up to its end, to the request in which it began: later work is not for this request.
static int requests_take_activity(void *context, const gp_activity_record_t *activity)
{
    parts_t *parts = context;
    const gp_dataset_t *dataset = parts->dataset;
    uint32_t coro = gp_dataset_coro_find(dataset, activity->coro_id);
    uint32_t trace = gp_dataset_trace_index_find(dataset, activity->trace);
    if (activity->trace == 0 || coro == GP_INDEX_NONE || trace == GP_INDEX_NONE ||
        requests_of(parts->requests, trace) < 2)
        return 0;
    uint32_t share = gp_dataset_share_find(dataset, coro, trace);
    uint32_t request = gp_requests_owner(dataset, parts->requests, trace, coro, activity->start_ns);
    if (share == GP_INDEX_NONE || request == GP_INDEX_NONE)
        return 0;
    part_t *part = requests_part_of(parts, share, request);
    if (part == NULL)
        return -ENOMEM;
    gp_ledger_t ledger = gp_dataset_activity_times(activity, 0, parts->requests->items[request].end_ns);
    gp_ledger_add(&part->ledger, &ledger);
    return 0;
}

static uint64_t requests_scaled(uint64_t whole, uint64_t part, uint64_t of)
{
    return of > 0 ? (uint64_t)((unsigned __int128)whole * (part < of ? part : of) / of) : 0;
}

// Divide a share's ledger among requests, as its activities are divided.
static void requests_divide(const parts_t *parts, const gp_ledger_t *sums)
{
    for (size_t i = 0; i < parts->count; i++) {
        const part_t *part = &parts->items[i];
        const gp_ledger_t *sum = &sums[part->share], *all = &parts->dataset->shares.items[part->share].ledger;
        gp_request_t *request = &parts->requests->items[part->request];
        const gp_ledger_t more = {
            .cpu_ns = requests_scaled(all->cpu_ns, part->ledger.slice_ns, sum->slice_ns),
            .blocked_ns = requests_scaled(all->blocked_ns, part->ledger.slice_ns, sum->slice_ns),
            .gil_ns = requests_scaled(all->gil_ns, part->ledger.slice_ns, sum->slice_ns),
            .slice_ns = requests_scaled(all->slice_ns, part->ledger.slice_ns, sum->slice_ns),
            .ready_ns = requests_scaled(all->ready_ns, part->ledger.ready_ns, sum->ready_ns),
            .parked_ns = requests_scaled(all->parked_ns, part->ledger.parked_ns, sum->parked_ns),
            .waiting_ns = requests_scaled(all->waiting_ns, part->ledger.waiting_ns, sum->waiting_ns),
            .switches = requests_scaled(all->switches, part->ledger.slice_ns, sum->slice_ns),
        };
        gp_ledger_add(&request->ledger, &more);
        request->queued_ns +=
            gp_dataset_coro_ns(parts->dataset, parts->dataset->shares.items[part->share].coro, &more, GP_KIND_QUEUED);
        request->coros++;
    }
}

static int requests_divide_shares(const parts_t *parts)
{
    gp_ledger_t *sums = calloc(parts->dataset->shares.count + 1, sizeof(*sums));
    if (sums == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < parts->count; i++)
        gp_ledger_add(&sums[parts->items[i].share], &parts->items[i].ledger);
    requests_divide(parts, sums);
    free(sums);
    return 0;
}

static int requests_sum_up(gp_requests_t *requests, const gp_dataset_t *dataset, gp_reading_t *reading)
{
    static const gp_reader_handlers_t handlers = {.activity = requests_take_activity};
    bool any_divided = false;
    for (size_t i = 0; i < dataset->shares.count; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        if (dataset->facts.traces.items[share->trace].index == 0 || requests_of(requests, share->trace) == 0)
            continue;
        gp_request_t *request = &requests->items[requests->first[share->trace]];
        any_divided |= requests_of(requests, share->trace) > 1;
        if (requests_of(requests, share->trace) == 1) {
            gp_ledger_add(&request->ledger, &share->ledger);
            request->queued_ns += gp_dataset_coro_ns(dataset, share->coro, &share->ledger, GP_KIND_QUEUED);
            request->coros++;
        }
    }
    if (!any_divided)
        return 0;
    requests->parts = calloc(1, sizeof(*requests->parts));
    if (requests->parts == NULL)
        return -ENOMEM;
    *requests->parts = (parts_t){.dataset = dataset, .requests = requests};
    gp_reading_add(reading, &handlers, requests->parts);
    return 0;
}

static void requests_free_parts(gp_requests_t *requests)
{
    if (requests->parts == NULL)
        return;
    gp_index_free(&requests->parts->index);
    free(requests->parts->items);
    free(requests->parts);
    requests->parts = NULL;
}

int gp_requests_end(gp_requests_t *requests)
{
    int result = requests->parts != NULL ? requests_divide_shares(requests->parts) : 0;
    requests_free_parts(requests);
    return result;
}

// --- endpoints

static int requests_by_latency(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// The least latency that so many per cent of all are not above.
static uint64_t requests_percentile(const uint64_t *sorted, size_t count, unsigned percent)
{
    return sorted[(count * percent + 99) / 100 - 1];
}

static int requests_sum_endpoints(gp_requests_t *requests, const gp_dataset_t *dataset)
{
    uint64_t *latencies = malloc((requests->count + 1) * sizeof(*latencies));
    size_t *at = calloc(requests->endpoint_count + 1, sizeof(*at));
    if (latencies == NULL || at == NULL) {
        free(latencies);
        free(at);
        return -ENOMEM;
    }
    for (size_t i = 0; i < requests->count; i++)
        requests->endpoints[requests->items[i].endpoint].count++;
    for (size_t i = 0; i < requests->endpoint_count; i++)
        at[i + 1] = at[i] + requests->endpoints[i].count;
    for (size_t i = 0; i < requests->count; i++) {
        const gp_request_t *request = &requests->items[i];
        gp_endpoint_t *endpoint = &requests->endpoints[request->endpoint];
        endpoint->total_ns += latencies[at[request->endpoint]++] = request->end_ns - request->start_ns;
        endpoint->failed +=
            request->span != GP_INDEX_NONE && dataset->spans.items[request->span].is.flags & GP_SPAN_FAILED;
    }
    for (size_t i = 0; i < requests->endpoint_count; i++) {
        gp_endpoint_t *endpoint = &requests->endpoints[i];
        uint64_t *own = latencies + at[i] - endpoint->count;
        qsort(own, endpoint->count, sizeof(*own), requests_by_latency);
        endpoint->p50_ns = requests_percentile(own, endpoint->count, 50);
        endpoint->p90_ns = requests_percentile(own, endpoint->count, 90);
        endpoint->p99_ns = requests_percentile(own, endpoint->count, 99);
        endpoint->max_ns = own[endpoint->count - 1];
    }
    free(latencies);
    free(at);
    return 0;
}

const char *gp_endpoint_text(const gp_endpoint_t *endpoint, char *text, size_t size)
{
    if (endpoint->kind == 0)
        snprintf(text, size, "no span recorded");
    else if (endpoint->name[0] == '\0')
        snprintf(text, size, "%s", gp_span_kind_text(endpoint->kind));
    else
        snprintf(text, size, "%s %s", gp_span_kind_text(endpoint->kind), endpoint->name);
    return text;
}

uint64_t gp_request_ns(const gp_request_t *request, enum gp_sample_kind kind)
{
    if (kind == GP_KIND_QUEUED)
        return request->queued_ns;
    uint64_t ns = gp_ledger_kind_ns(&request->ledger, kind), queued_ns = kind == GP_KIND_READY ? request->queued_ns : 0;
    return ns > queued_ns ? ns - queued_ns : 0;
}

gp_requests_t *gp_requests_begin(const gp_dataset_t *dataset, bool ledgers, gp_reading_t *reading)
{
    gp_requests_t *requests = calloc(1, sizeof(*requests));
    int result = requests != NULL ? requests_add_spans(requests, dataset) : -ENOMEM;
    if (result == 0)
        result = requests_add_others(requests, dataset);
    if (result == 0)
        result = requests_sort(requests, dataset);
    if (result == 0)
        result = requests_sum_endpoints(requests, dataset);
    if (result == 0 && ledgers && !dataset->windowed)
        result = requests_sum_up(requests, dataset, reading);
    if (result == 0)
        return requests;
    gp_requests_free(requests);
    errno = -result;
    return NULL;
}

gp_requests_t *gp_requests_create(const gp_dataset_t *dataset, bool ledgers)
{
    gp_reading_t reading = {0};
    gp_requests_t *requests = gp_requests_begin(dataset, ledgers, &reading);
    int result = requests != NULL ? gp_dataset_read(dataset, &reading) : -errno;
    if (result == 0)
        result = gp_requests_end(requests);
    if (result == 0)
        return requests;
    gp_requests_free(requests);
    errno = -result;
    return NULL;
}

void gp_requests_free(gp_requests_t *requests)
{
    if (requests == NULL)
        return;
    requests_free_parts(requests);
    free(requests->items);
    free(requests->first);
    free(requests->endpoints);
    gp_index_free(&requests->endpoint_index);
    free(requests);
}
