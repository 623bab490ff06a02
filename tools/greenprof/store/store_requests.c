// SPDX-License-Identifier: MIT
// greenprof report --by request of a store: the slowest requests of all services, and their endpoints. --by
// victim-time: hogs and their victims.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "command.h"
#include "message.h"
#include "model/kinds.h"
#include "print.h"
#include "progress.h"
#include "report/report_json.h"
#include "report/row_limits.h"
#include "report/tables.h"
#include "ship/ask/ask.h"
#include "store.h"

typedef struct printing {
    const char *shown; // the URL
    gp_row_limits_t restrictions;
    bool limited;    // only so many were asked for
    bool has_header; // of endpoints
    gp_json_t *json; // NULL = text
} printing_t;

// "running 12 %, parked 88 %": what the time of the critical path was, most first.
static void store_requests_print_path(const gp_ask_request_t *request)
{
    static const char *const words[GP_KIND_COUNT] = {
        [GP_KIND_CPU] = "running",     [GP_KIND_PREEMPTED] = "preempted", [GP_KIND_PARKED] = "parked",
        [GP_KIND_WAITING] = "waiting", [GP_KIND_READY] = "ready",         [GP_KIND_BLOCKED] = "blocked",
        [GP_KIND_GIL] = "gil",         [GP_KIND_LOCK] = "lock",           [GP_KIND_QUEUED] = "queued"};
    uint64_t left[GP_KIND_COUNT], whole = 0;
    char text[96] = "-";
    size_t len = 0;
    for (size_t i = 0; i < GP_KIND_COUNT; i++)
        whole += left[i] = request->path_ns[i];
    for (size_t shown = 0; shown < 3 && whole > 0; shown++) {
        size_t most = 0;
        for (size_t i = 1; i < GP_KIND_COUNT; i++)
            most = left[i] > left[most] ? i : most;
        double percent = (double)left[most] * 100 / (double)whole;
        if (percent < 0.5)
            break;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %.0f %%", shown > 0 ? ", " : "", words[most],
                                percent);
        left[most] = 0;
    }
    printf(" %-44s", text);
}

static void store_requests_print_start(uint64_t start_ns)
{
    time_t seconds = (time_t)(start_ns / 1000000000);
    struct tm utc;
    char text[32] = "-";
    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    printf(" %s", text);
}

static void store_requests_print_request(const gp_ask_request_t *request)
{
    const gp_row_times_t *times = &request->row.times;
    const uint64_t columns[] = {times->cpu_ns,   times->blocked_ns, times->preempted_ns,
                                times->ready_ns, times->parked_ns,  times->waiting_ns};
    char trace[33];
    gp_print_ms(request->row.latency_ns, 10);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        gp_print_ms(columns[i], 11);
    store_requests_print_path(request);
    store_requests_print_start(request->row.start_ns);
    gp_hex_write(trace, request->row.trace, sizeof(request->row.trace));
    printf(" %-7s %-32s ", request->row.has_failed ? "failed" : "ok", trace);
    gp_print_text(request->process.service);
    printf(" ");
    gp_print_text(request->process.version[0] != '\0' ? request->process.version : "-");
    printf(" ");
    gp_print_text(request->process.host[0] != '\0' ? request->process.host : "-");
    printf(" ");
    gp_print_text(request->row.endpoint);
    printf("\n");
}

static const char *store_requests_name_of(const void *context, uint32_t row)
{
    return ((const gp_ask_request_t *)context)[row].row.endpoint;
}

// A row of JSON: the keys of a capture's requests, with where it was and what its path was.
static void store_requests_json_request(gp_json_t *json, const gp_ask_request_t *request)
{
    const gp_row_times_t *times = &request->row.times;
    const gp_row_process_t *process = &request->process;
    const struct {
        const char *key;
        uint64_t ns;
    } states[] = {
        {"cpu_ns", times->cpu_ns},     {"blocked_ns", times->blocked_ns}, {"preempted_ns", times->preempted_ns},
        {"ready_ns", times->ready_ns}, {"parked_ns", times->parked_ns},   {"waiting_ns", times->waiting_ns}};
    char trace[33];
    uint64_t path_ns = 0;
    gp_hex_write(trace, request->row.trace, sizeof(request->row.trace));
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_text(json, "endpoint", request->row.endpoint);
    gp_json_key_text(json, "trace", trace);
    gp_json_key_text(json, "status", request->row.has_failed ? "failed" : "ok");
    gp_json_key_uint(json, "start_ns", request->row.start_ns);
    gp_json_key_uint(json, "latency_ns", request->row.latency_ns);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        gp_json_key_uint(json, states[i].key, states[i].ns);
    gp_json_key_text(json, "service", process->service);
    gp_json_key_text(json, "version", process->version);
    gp_json_key_text(json, "host", process->host);
    for (size_t i = 0; i < GP_KIND_COUNT; i++)
        path_ns += request->path_ns[i];
    gp_json_key(json, "path");
    gp_json_open(json, '{');
    gp_report_json_states(json, request->path_ns, path_ns > 0);
    gp_json_close(json, '}');
    gp_json_close(json, '}');
}

static void store_requests_json(const printing_t *printing, const gp_ask_request_t *requests, uint32_t *rows,
                                size_t count)
{
    gp_json_t *json = printing->json;
    count = gp_report_json_restrict(printing->restrictions, rows, count, store_requests_name_of, requests);
    gp_json_open(json, '{');
    gp_json_key_uint(json, "version", GP_REPORT_JSON_VERSION);
    gp_json_key_text(json, "file", printing->shown);
    gp_json_key_text(json, "by", "request");
    gp_json_key_text(json, "measure", "latency");
    gp_json_key(json, "rows");
    gp_json_open(json, '[');
    for (size_t i = 0; i < count; i++)
        store_requests_json_request(json, &requests[rows[i]]);
    gp_json_close(json, ']');
    gp_json_key(json, "endpoints");
    gp_json_open(json, '[');
}

static int store_requests_print_requests(void *context, const gp_ask_request_t *requests, size_t count)
{
    const printing_t *printing = context;
    uint32_t *rows = calloc(count + 1, sizeof(*rows));
    if (rows == NULL)
        return -ENOMEM;
    gp_progress_end();
    for (size_t i = 0; i < count; i++)
        rows[i] = (uint32_t)i;
    if (printing->json != NULL) {
        store_requests_json(printing, requests, rows, count);
        free(rows);
        return 0;
    }
    gp_print_text(printing->shown);
    printf("\n\n   %s%zu requests, milliseconds; cpu to waiting are those of the coroutine that each began on\n",
           printing->limited ? "The first " : "", count);
    printf("   critical path: where the latency went, once the capture has ended; report --by critical-path has its "
           "stacks\n");
    count = gp_restrictions_apply(printing->restrictions, rows, count, store_requests_name_of, requests);
    printf(
        "\n   latency        cpu    blocked    preempt      ready     parked    waiting %-44s %-20s %-7s %-32s service "
        "version host endpoint\n",
        "critical path", "began", "status", "trace");
    for (size_t i = 0; i < count; i++)
        store_requests_print_request(&requests[rows[i]]);
    free(rows);
    return 0;
}

static int store_requests_print_endpoint(void *context, const gp_ask_endpoint_t *endpoint)
{
    printing_t *printing = context;
    const uint64_t columns[] = {endpoint->p50_ns, endpoint->p90_ns, endpoint->p99_ns, endpoint->max_ns};
    static const char *const keys[] = {"p50_ns", "p90_ns", "p99_ns", "max_ns"};
    gp_json_t *json = printing->json;
    if (json != NULL) {
        gp_json_line(json);
        gp_json_open(json, '{');
        gp_json_key_text(json, "endpoint", endpoint->endpoint);
        gp_json_key_text(json, "service", endpoint->service);
        gp_json_key_uint(json, "requests", endpoint->count);
        gp_json_key_uint(json, "failed", endpoint->failed);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            gp_json_key_uint(json, keys[i], columns[i]);
        gp_json_close(json, '}');
        return 0;
    }
    if (!printing->has_header)
        printf("\n   Endpoints, by the sum of all their latencies\n\n"
               "  requests   failed        p50        p90        p99        max service endpoint\n");
    printing->has_header = true;
    printf("%10" PRIu64 " %8" PRIu64, endpoint->count, endpoint->failed);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        gp_print_ms(columns[i], 11);
    printf(" ");
    gp_print_text(endpoint->service);
    printf(" ");
    gp_print_text(endpoint->endpoint);
    printf("\n");
    return 0;
}

// The order of a store's rows; by latency without a column of its own.
static const char *store_requests_order_of(const gp_sorts_t *sorts)
{
    static const char *const columns[] = {
        [GP_SORT_NAME] = "endpoint",           [GP_SORT_CPU] = "cpu_ns DESC",
        [GP_SORT_BLOCKED] = "blocked_ns DESC", [GP_SORT_PREEMPTED] = "preempted_ns DESC",
        [GP_SORT_READY] = "ready_ns DESC",     [GP_SORT_PARKED] = "parked_ns DESC",
        [GP_SORT_WAITING] = "waiting_ns DESC",
    };
    gp_sort_t sort = sorts->keys[0]->sort;
    const char *column = sort < sizeof(columns) / sizeof(columns[0]) ? columns[sort] : NULL;
    return column != NULL ? column : "latency_ns DESC";
}

static int store_requests_check(const gp_arguments_t *arguments)
{
    const gp_choice_t *choice = &arguments->choice;
    if (choice->from != NULL || choice->to != NULL)
        return gp_usage_error("report", "--by request of a store: --from and --to are parameters of its URL, "
                                        "'...?from=-1h&to=-30m'");
    if (choice->names.count + choice->coroutines.count + choice->threads.count + arguments->focus.count +
            arguments->ignore.count >
        0)
        return gp_usage_error("report",
                              "--by request of a store: --service, --host, --version, --endpoint, --label and "
                              "--trace choose");
    return 0;
}

int gp_store_print_requests(const gp_arguments_t *arguments, const gp_table_options_t *options)
{
    char error[GP_FLEET_ERROR_SIZE] = "";
    gp_store_filters_t filters;
    int status = store_requests_check(arguments);
    if (status != 0)
        return status;
    if (gp_store_filters(arguments, &filters) < 0)
        return gp_fail("command line", "%s", strerror(ENOMEM));
    bool limited = arguments->rows > 0 && arguments->restrictions.count == 0;
    printing_t printing = {.shown = gp_ask_shown(arguments->operands[0]),
                           .limited = limited,
                           .restrictions = options->restrictions,
                           .json = options->json};
    const gp_ask_requests_t ask = {
        .order = store_requests_order_of(&options->sorts),
        .limit = limited ? arguments->rows : 0,
        .filters = filters.items,
        .filter_count = filters.count,
        .take_requests = store_requests_print_requests,
        .take_endpoint = store_requests_print_endpoint,
        .context = &printing,
    };
    int result = printing.shown != NULL ? 0 : -ENOMEM;
    if (result == 0) {
        gp_progress_begin("asking", printing.shown, -1);
        result = gp_ask_requests(arguments->operands[0], &ask, error);
        gp_progress_end();
    }
    if (result < 0)
        status = gp_fail(printing.shown != NULL ? printing.shown : "memory", "%s",
                         error[0] != '\0' ? error : strerror(-result));
    else if (options->json != NULL) {
        gp_json_close(options->json, ']');
        gp_json_close(options->json, '}');
    }
    if (result >= 0)
        printf("\n");
    free(filters.items);
    free((char *)printing.shown);
    return status;
}

static int store_requests_print_delay(void *context, const gp_ask_delay_t *delay)
{
    printing_t *printing = context;
    if (!printing->has_header)
        printf("   Long slices, and what was ready meanwhile, milliseconds\n\n     delay    times coroutine\n");
    printing->has_header = true;
    gp_print_ms(delay->ns, 10);
    printf(" %8" PRIu64 " ", delay->count);
    gp_print_text(delay->hog);
    printf(" of ");
    gp_print_text(delay->service);
    printf(" kept ");
    gp_print_text(delay->victim);
    if (delay->endpoint[0] != '\0') {
        printf(" for ");
        gp_print_text(delay->endpoint);
    }
    printf(" waiting\n");
    return 0;
}

int gp_store_print_delays(const gp_arguments_t *arguments)
{
    enum { SHOWN = 20 };
    char error[GP_FLEET_ERROR_SIZE] = "", *shown = gp_ask_shown(arguments->operands[0]);
    gp_store_filters_t filters;
    printing_t printing = {.shown = shown};
    if (shown == NULL || gp_store_filters(arguments, &filters) < 0) {
        free(shown);
        return gp_fail("command line", "%s", strerror(ENOMEM));
    }
    const gp_ask_delays_t ask = {.limit = SHOWN,
                                 .filters = filters.items,
                                 .filter_count = filters.count,
                                 .take = store_requests_print_delay,
                                 .context = &printing};
    int result = gp_ask_delays(arguments->operands[0], &ask, error), status = 0;
    if (result < 0)
        status = gp_fail(shown, "%s", error);
    else if (printing.has_header)
        printf("\n");
    free(filters.items);
    free(shown);
    return status;
}
