// SPDX-License-Identifier: MIT
// The table by request, and the one of endpoints.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/write/endpoint_json.h"
#include "print.h"
#include "report_json.h"
#include "tables.h"

enum { NAME_SIZE = 512 };

typedef struct request_row {
    const gp_request_t *request;
    char *name; // of its endpoint
} request_row_t;

static const gp_table_options_t *sorting; // qsort() has no context

static uint64_t report_requests_latency_of(const gp_request_t *request)
{
    return request->end_ns - request->start_ns;
}

// The value that a key sorts by; without one of its own, the latency.
static uint64_t report_requests_column_of(const gp_request_t *request, gp_sort_t sort)
{
    static const enum gp_sample_kind kinds[] = {
        [GP_SORT_CPU] = GP_KIND_CPU,     [GP_SORT_BLOCKED] = GP_KIND_BLOCKED, [GP_SORT_PREEMPTED] = GP_KIND_PREEMPTED,
        [GP_SORT_READY] = GP_KIND_READY, [GP_SORT_PARKED] = GP_KIND_PARKED,   [GP_SORT_WAITING] = GP_KIND_WAITING,
        [GP_SORT_GIL] = GP_KIND_GIL,     [GP_SORT_LOCK] = GP_KIND_LOCK,       [GP_SORT_QUEUED] = GP_KIND_QUEUED,
    };
    if (sort == GP_SORT_SWITCHES)
        return request->ledger.switches;
    if (sort < GP_SORT_WALL || sort == GP_SORT_WALL || sort == GP_SORT_LONGEST)
        return report_requests_latency_of(request);
    return gp_request_ns(request, kinds[sort]);
}

static int report_requests_compare(const void *left, const void *right)
{
    const request_row_t *a = left, *b = right;
    gp_sort_t sort = sorting->sorts.keys[0]->sort;
    bool by_name = sort == GP_SORT_NAME || sort == GP_SORT_STANDARD_NAME || sort == GP_SORT_NAME_FILE_LINE;
    int result = by_name ? strcmp(a->name, b->name) : 0;
    uint64_t x = report_requests_column_of(a->request, sort), y = report_requests_column_of(b->request, sort);
    if (result == 0 && x == y) {
        x = report_requests_latency_of(a->request);
        y = report_requests_latency_of(b->request);
    }
    if (result == 0 && x == y)
        return a->request < b->request ? -1 : a->request > b->request;
    return result != 0 ? result : x > y ? -1 : 1;
}

static const char *report_requests_status_of(const gp_dataset_t *dataset, const gp_request_t *request)
{
    uint32_t flags = request->span != GP_INDEX_NONE ? dataset->spans.items[request->span].is.flags : 0;
    if (request->is_about)
        return "about";
    if (request->is_cut)
        return "open";
    return flags & GP_SPAN_FAILED ? "failed" : flags & GP_SPAN_REPAIRED ? "repaired" : "ok";
}

static void report_requests_print_request(const gp_input_t *source, const request_row_t *row)
{
    static const enum gp_sample_kind kinds[] = {GP_KIND_CPU,    GP_KIND_BLOCKED, GP_KIND_PREEMPTED, GP_KIND_READY,
                                                GP_KIND_PARKED, GP_KIND_WAITING, GP_KIND_GIL,       GP_KIND_LOCK,
                                                GP_KIND_QUEUED}; // the last where there is any
    const gp_request_t *request = row->request;
    char trace[64];
    gp_print_ms(report_requests_latency_of(request), 10);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!gp_dataset_has_kind(source->dataset, kinds[i]))
            continue;
        else if (source->dataset->windowed)
            printf(" %10s", "-");
        else
            gp_print_ms(gp_request_ns(request, kinds[i]), 11);
    gp_report_trace_label(source->dataset, request->trace, true, trace, sizeof(trace));
    if (source->dataset->windowed)
        printf(" %10s", "-");
    else
        printf(" %10" PRIu32, request->coros);
    gp_print_seconds(request->start_ns, 10);
    printf(" %-8s %-32s ", report_requests_status_of(source->dataset, request), trace);
    gp_print_text(row->name);
    printf("\n");
}

static const char *report_requests_name_of(const void *context, uint32_t row)
{
    return ((const request_row_t *)context)[row].name;
}

static int report_requests_by_total(const void *left, const void *right)
{
    const gp_endpoint_t *a = left, *b = right;
    return a->total_ns > b->total_ns ? -1 : a->total_ns < b->total_ns;
}

// The endpoints of all requests in the capture, or of the requests in the chosen part of its time.
static int report_requests_print_endpoints(const gp_requests_t *requests)
{
    char text[NAME_SIZE];
    gp_endpoint_t *endpoints = calloc(requests->endpoint_count + 1, sizeof(*endpoints));
    if (endpoints == NULL)
        return -ENOMEM;
    memcpy(endpoints, requests->endpoints, requests->endpoint_count * sizeof(*endpoints));
    qsort(endpoints, requests->endpoint_count, sizeof(*endpoints), report_requests_by_total);
    printf("   Endpoints, by the sum of all their latencies\n\n");
    printf("  requests   failed        p50        p90        p99        max endpoint\n");
    for (size_t i = 0; i < requests->endpoint_count; i++) {
        printf("%10" PRIu32 " %8" PRIu32, endpoints[i].count, endpoints[i].failed);
        gp_print_ms(endpoints[i].p50_ns, 11);
        gp_print_ms(endpoints[i].p90_ns, 11);
        gp_print_ms(endpoints[i].p99_ns, 11);
        gp_print_ms(endpoints[i].max_ns, 11);
        printf(" ");
        gp_print_name(gp_endpoint_text(&endpoints[i], text, sizeof(text)), 64);
        printf("\n");
    }
    printf("\n");
    free(endpoints);
    return 0;
}

static size_t report_requests_fill_rows(const gp_input_t *source, request_row_t *rows, int *result)
{
    const gp_requests_t *requests = source->requests;
    char text[NAME_SIZE];
    size_t count = 0;
    for (size_t i = 0; i < requests->count && *result == 0; i++) {
        const gp_request_t *request = &requests->items[i];
        if (!source->requests_chosen[i])
            continue;
        rows[count].request = request;
        // -Wanalyzer-malloc-leak: the caller frees every name
        rows[count].name = strdup(gp_endpoint_text(&requests->endpoints[request->endpoint], text, sizeof(text)));
        if (rows[count++].name == NULL)
            *result = -ENOMEM;
    }
    return count;
}

static void report_requests_json_row(gp_json_t *json, const gp_input_t *source, const request_row_t *row)
{
    const gp_request_t *request = row->request;
    uint64_t parts_ns[GP_KIND_COUNT];
    char trace[64];
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
        parts_ns[kind] = gp_request_ns(request, (enum gp_sample_kind)kind);
    gp_report_trace_label(source->dataset, request->trace, true, trace, sizeof(trace));
    gp_json_open(json, '{');
    gp_json_key_text(json, "endpoint", row->name);
    gp_json_key_text(json, "trace", trace);
    gp_json_key_text(json, "status", report_requests_status_of(source->dataset, request));
    gp_json_key_uint(json, "start_ns", request->start_ns);
    gp_json_key_uint(json, "latency_ns", report_requests_latency_of(request));
    gp_report_json_states(json, parts_ns, !source->dataset->windowed);
    gp_report_json_known(json, "coroutines", !source->dataset->windowed, request->coros);
    gp_json_close(json, '}');
    gp_json_line(json);
}

static void report_requests_json_endpoint(gp_json_t *json, const gp_endpoint_t *endpoint)
{
    char text[NAME_SIZE];
    gp_json_open(json, '{');
    gp_json_key_text(json, "endpoint", gp_endpoint_text(endpoint, text, sizeof(text)));
    gp_json_key_uint(json, "requests", endpoint->count);
    gp_endpoint_put_figures(json, endpoint);
    gp_json_close(json, '}');
    gp_json_line(json);
}

static void report_requests_json(const gp_input_t *source, const gp_table_options_t *options, request_row_t *rows,
                                 uint32_t *numbers, size_t count)
{
    gp_json_t *json = options->json;
    sorting = options;
    if (count > 0)
        qsort(rows, count, sizeof(*rows), report_requests_compare);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)i;
    count = gp_report_json_restrict(options->restrictions, numbers, count, report_requests_name_of, rows);
    for (size_t i = 0; i < count; i++)
        report_requests_json_row(json, source, &rows[numbers[i]]);
    gp_json_close(json, ']');
    gp_json_key(json, "endpoints");
    gp_json_open(json, '[');
    gp_json_line(json);
    for (size_t i = 0; i < source->requests->endpoint_count; i++)
        report_requests_json_endpoint(json, &source->requests->endpoints[i]);
    gp_json_close(json, ']');
}

static void report_requests_print_rows(const gp_input_t *source, const gp_table_options_t *options, request_row_t *rows,
                                       uint32_t *numbers, size_t count)
{
    sorting = options;
    qsort(rows, count, sizeof(*rows), report_requests_compare);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)i;
    bool has_gil = source->dataset->has_gil, has_lock = source->dataset->has_lock,
         has_queued = source->dataset->has_queued;
    printf("   %zu requests, milliseconds; cpu to %s are sums over their coroutines\n", count,
           has_queued ? "queued"
           : has_lock ? "lock"
           : has_gil  ? "gil"
                      : "waiting");
    if (source->requests->left_out > 0)
        printf("   %zu more are not whole within the chosen time\n", source->requests->left_out);
    count = gp_restrictions_apply(options->restrictions, numbers, count, report_requests_name_of, rows);
    printf(
        "\n   latency        cpu    blocked    preempt      ready     parked    waiting%s%s%s coroutines   at second "
        "status   trace                            endpoint\n",
        has_gil ? "        gil" : "", has_lock ? "       lock" : "", has_queued ? "     queued" : "");
    for (size_t i = 0; i < count; i++)
        report_requests_print_request(source, &rows[numbers[i]]);
    printf("\n");
}

int gp_report_print_requests(const gp_input_t *source, const gp_table_options_t *options)
{
    size_t most = source->requests->count;
    request_row_t *rows = calloc(most + 1, sizeof(*rows));
    uint32_t *numbers = calloc(most + 1, sizeof(*numbers));
    int result = rows != NULL && numbers != NULL ? 0 : -ENOMEM;
    size_t count = result == 0 ? report_requests_fill_rows(source, rows, &result) : 0;
    if (result == 0 && options->json != NULL) {
        report_requests_json(source, options, rows, numbers, count);
    } else if (result == 0) {
        report_requests_print_rows(source, options, rows, numbers, count);
        result = report_requests_print_endpoints(source->requests);
    }
    for (size_t i = 0; i < count; i++)
        free(rows[i].name);
    free(rows);
    free(numbers);
    return result;
}
