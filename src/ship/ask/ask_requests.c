// SPDX-License-Identifier: MIT
// Requests of all services: the slowest, what they did meanwhile, and endpoints.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/stream.h"
#include "ship/ask/ask_question.h"

enum { PATHS_AT_ONCE = 1000, MARGIN_S = 3600, DAY_S = 86400, NS = 1000000000 }; // a grain is an hour at most

typedef struct found {
    gp_ask_request_t *items; // [count]
    size_t count, room;
    gp_arena_t arena;
} found_t;

static int ask_requests_read_request(gp_ask_reader_t *reader, gp_ask_request_t *request)
{
    gp_row_request_t *row = &request->row;
    gp_row_process_t *process = &request->process;
    GP_REQUESTS_COLUMNS(GP_ASK_FIELD, GP_ASK_VALUE, GP_ASK_LIST)
    return gp_ask_result(reader);
}

static int ask_requests_read_requests(const gp_ask_bytes_t *answer, found_t *found)
{
    gp_ask_reader_t reader = gp_ask_reader(answer, &found->arena);
    int result = 0;
    while (result == 0 && gp_ask_more(&reader)) {
        if (gp_grow(&found->items, &found->room, found->count, sizeof(*found->items)) < 0)
            return -ENOMEM;
        found->items[found->count] = (gp_ask_request_t){.process.id = 0};
        result = ask_requests_read_request(&reader, &found->items[found->count++]);
    }
    return result;
}

static bool ask_requests_has_trace(const gp_ask_request_t *request)
{
    static const uint8_t none[16];
    return memcmp(request->row.trace, none, sizeof(none)) != 0;
}

// " WHERE tenant = '...' AND measure = 1 AND time ... AND trace IN (...)" of some requests; NULL: there is none.
static char *ask_requests_paths_of(const gp_question_t *question, const gp_ask_request_t *requests, size_t count)
{
    char *where = NULL, hex[33];
    size_t size, traces = 0;
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    FILE *text = open_memstream(&where, &size);
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t start_ns = requests[i].row.start_ns, end_ns = start_ns + requests[i].row.latency_ns;
        first_ns = start_ns < first_ns ? start_ns : first_ns;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
    }
    fputs(" WHERE tenant = ", text);
    int result = gp_question_quote(text, question->tenant);
    uint64_t first_s = first_ns / NS - MARGIN_S, last_s = last_ns / NS + 1;
    fprintf(text, " AND measure = 1 AND day >= toDate(%" PRIu64 ") AND day <= toDate(%" PRIu64 ")", first_s / DAY_S,
            last_s / DAY_S);
    fprintf(text, " AND time >= toDateTime(%" PRIu64 ") AND time <= toDateTime(%" PRIu64 ")", first_s, last_s);
    for (size_t i = 0; i < count; i++)
        if (ask_requests_has_trace(&requests[i])) {
            gp_hex_write(hex, requests[i].row.trace, sizeof(requests[i].row.trace));
            fprintf(text, "%stoFixedString(unhex('%s'), 16)", traces++ == 0 ? " AND trace IN (" : ",", hex);
        }
    fputc(')', text);
    if (gp_stream_close(text) && result == 0 && traces > 0)
        return where;
    free(where);
    return NULL;
}

static int ask_requests_by_path(const void *left, const void *right)
{
    const gp_ask_request_t *a = *(gp_ask_request_t *const *)left, *b = *(gp_ask_request_t *const *)right;
    int order = memcmp(a->row.trace, b->row.trace, sizeof(a->row.trace));
    return order != 0 ? order : a->process.id < b->process.id ? -1 : a->process.id > b->process.id;
}

#define PATHS(C)                                                                                                       \
    C(Id128, "trace", key.row.trace)                                                                                   \
    C(UInt64, "process", key.process.id)                                                                               \
    C(UInt8, "state", state)                                                                                           \
    C(UInt64, "sum(weight_ns)", ns)

// Give each request the paths of its trace in its process.
static int ask_requests_read_paths(const gp_ask_bytes_t *answer, gp_ask_request_t *requests, size_t count)
{
    gp_ask_request_t **sorted = calloc(count + 1, sizeof(*sorted)), key = {.process.id = 0};
    gp_ask_reader_t all = gp_ask_reader(answer, NULL), *reader = &all;
    if (sorted == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &requests[i];
    qsort(sorted, count, sizeof(*sorted), ask_requests_by_path);
    while (gp_ask_more(reader)) {
        const gp_ask_request_t *wanted = &key;
        uint8_t state;
        uint64_t ns;
        PATHS(GP_ASK_TAKE)
        gp_ask_request_t **found = bsearch(&wanted, sorted, count, sizeof(*sorted), ask_requests_by_path);
        while (found > sorted && ask_requests_by_path(found - 1, &wanted) == 0)
            found--;
        for (; found != NULL && found < sorted + count && ask_requests_by_path(found, &wanted) == 0; found++)
            if (state < GP_KIND_COUNT)
                (*found)->path_ns[state] = ns;
    }
    free(sorted);
    return gp_ask_result(reader);
}

static int ask_requests_paths(const gp_question_t *question, gp_ask_request_t *requests, size_t count)
{
    gp_ask_bytes_t answer = {0};
    char *where = ask_requests_paths_of(question, requests, count);
    const gp_question_t paths = {.clickhouse = question->clickhouse,
                                 .prefix = question->prefix,
                                 .table = GP_TABLE_SAMPLES,
                                 .where = where,
                                 .error = question->error};
    if (where == NULL)
        return 0; // none has a trace
    int result = gp_question_ask(&paths, PATHS(GP_ASK_SELECT), " GROUP BY trace, process, state", &answer);
    if (result == 0)
        result = ask_requests_read_paths(&answer, requests, count);
    free(where);
    free(answer.data);
    return result;
}

static int ask_requests_slowest(const gp_question_t *question, const char *order, uint64_t limit, found_t *found)
{
    char rest[160];
    gp_ask_bytes_t answer = {0};
    int len = snprintf(rest, sizeof(rest), " ORDER BY %s, latency_ns DESC, span", order);
    if (limit > 0)
        snprintf(rest + len, sizeof(rest) - (size_t)len, " LIMIT %" PRIu64, limit);
    int result = gp_question_ask_rows(question, "", rest, &answer);
    if (result == 0)
        result = ask_requests_read_requests(&answer, found);
    for (size_t i = 0; i < found->count && result == 0; i += PATHS_AT_ONCE)
        result = ask_requests_paths(question, &found->items[i],
                                    found->count - i < PATHS_AT_ONCE ? found->count - i : (size_t)PATHS_AT_ONCE);
    free(answer.data);
    return result;
}

#define ENDPOINTS(C)                                                                                                   \
    C(String, "service", endpoint.service)                                                                             \
    C(String, "endpoint", endpoint.endpoint)                                                                           \
    C(UInt64, "count() AS requests", endpoint.count)                                                                   \
    C(UInt64, "toUInt64(sum(failed))", endpoint.failed)                                                                \
    C(UInt64, "quantileExact(0.5)(latency_ns)", endpoint.p50_ns)                                                       \
    C(UInt64, "quantileExact(0.9)(latency_ns)", endpoint.p90_ns)                                                       \
    C(UInt64, "quantileExact(0.99)(latency_ns)", endpoint.p99_ns)                                                      \
    C(UInt64, "max(latency_ns)", endpoint.max_ns)

static int ask_requests_read_endpoints(const gp_ask_bytes_t *answer, const gp_ask_requests_t *ask)
{
    gp_arena_t arena = {0};
    gp_ask_reader_t all = gp_ask_reader(answer, &arena), *reader = &all;
    int result = 0;
    while (result == 0 && gp_ask_more(reader)) {
        gp_ask_endpoint_t endpoint;
        ENDPOINTS(GP_ASK_TAKE)
        result = gp_ask_result(reader);
        if (result == 0)
            result = ask->take_endpoint(ask->context, &endpoint);
        gp_arena_free(&arena);
    }
    return result;
}

static int ask_requests_endpoints(const gp_question_t *question, const gp_ask_requests_t *ask)
{
    gp_ask_bytes_t answer = {0};
    int result =
        gp_question_ask(question, ENDPOINTS(GP_ASK_SELECT),
                        " GROUP BY service, endpoint ORDER BY sum(latency_ns) DESC, service, endpoint", &answer);
    if (result == 0)
        result = ask_requests_read_endpoints(&answer, ask);
    free(answer.data);
    return result;
}

static int ask_requests_all(const gp_question_t *question, const gp_ask_requests_t *ask)
{
    found_t found = {0};
    int result = ask_requests_slowest(question, ask->order, ask->limit, &found);
    if (result == 0 && found.count == 0)
        return gp_question_fail(question, -ENODATA, "there are no requests that were chosen", "");
    if (result == 0)
        result = ask->take_requests(ask->context, found.items, found.count);
    if (result == 0)
        result = ask_requests_endpoints(question, ask);
    free(found.items);
    gp_arena_free(&found.arena);
    return result;
}

int gp_ask_requests(const char *url, const gp_ask_requests_t *ask, char error[GP_FLEET_ERROR_SIZE])
{
    gp_question_t question;
    int result = gp_question_open(&question, url, GP_TABLE_REQUESTS, ask->filters, ask->filter_count, error);
    if (result == 0)
        result = ask_requests_all(&question, ask);
    return gp_question_close(&question, result);
}
