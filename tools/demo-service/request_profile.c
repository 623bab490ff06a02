// SPDX-License-Identifier: MIT
#include "request_profile.h"

#include <greenprof/coro.h>

#include <ctype.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static atomic_uint sequence;

// The all-zero id is none.
static void new_trace_id(prof_trace_id_t *id)
{
    if (getrandom(id->bytes, sizeof id->bytes, 0) < 0)
        memset(id->bytes, 0, sizeof id->bytes);
    id->bytes[15] |= 1;
}

// The span of the caller, which the header names after the trace.
static uint64_t parent_of(const char *traceparent)
{
    enum { SPAN_AT = 36 };
    return strtoull(traceparent + SPAN_AT, NULL, 16);
}

static void take_trace_id(exchange_t *exchange)
{
    const char *traceparent = http_header(&exchange->request, "traceparent");
    exchange->parent_id = 0;
    if (traceparent == NULL || prof_trace_parse(traceparent, &exchange->trace) != 0)
        new_trace_id(&exchange->trace);
    else if (strlen(traceparent) >= PROF_TRACE_TRACEPARENT_SIZE - 1)
        exchange->parent_id = parent_of(traceparent);
}

// A request id becomes the name of a file: "../../etc/passwd" must not.
static void copy_as_file_name(char id[REQUEST_ID_SIZE], const char *text)
{
    size_t len = 0;
    for (; text[len] != '\0' && len + 1 < REQUEST_ID_SIZE; len++) {
        bool plain = isalnum((unsigned char)text[len]) || strchr("-_.", text[len]) != NULL;
        id[len] = plain && !(len == 0 && text[len] == '.') ? text[len] : '_';
    }
    id[len] = '\0';
}

static void take_request_id(exchange_t *exchange, const char *trace)
{
    const char *given = http_header(&exchange->request, "X-Request-Id");
    unsigned number = atomic_fetch_add_explicit(&sequence, 1, memory_order_relaxed);
    if (given != NULL && *given != '\0')
        copy_as_file_name(exchange->id, given);
    else
        snprintf(exchange->id, sizeof exchange->id, "%06u-%.8s", number, trace);
}

void profile_identify(exchange_t *exchange)
{
    char trace[PROF_TRACE_HEX_SIZE];
    take_trace_id(exchange);
    prof_trace_to_hex(&exchange->trace, trace);
    take_request_id(exchange, trace);
    http_add_header(&exchange->response, "X-Request-Id", exchange->id);
    http_add_header(&exchange->response, "X-Trace-Id", trace);
}

prof_span_t *profile_begin_span(const exchange_t *exchange, int64_t arrival_ns)
{
    char name[80];
    const prof_field_t fields[] = {{"query", exchange->request.query}, {"request_id", exchange->id}};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.trace = &exchange->trace;
    options.parent_id = exchange->parent_id;
    options.flags = PROF_SPAN_REMOTE_PARENT;
    options.start_unix_ns = (uint64_t)arrival_ns;
    options.fields = fields;
    options.field_count = sizeof fields / sizeof fields[0];
    snprintf(name, sizeof name, "GET %s", exchange->request.path);
    return prof_span_begin(PROF_SPAN_REST_DISPATCH, name, &options);
}

prof_t *profile_begin(const exchange_t *exchange)
{
    if (exchange->worker->profile_dir == NULL)
        return NULL;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.name = exchange->id;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        perror("demo-service: prof_start");
    return profile;
}

void profile_end(prof_t *profile, exchange_t *exchange)
{
    char path[PATH_MAX];
    char cpu_us[32];
    if (profile == NULL)
        return;
    prof_stop(profile);
    snprintf(cpu_us, sizeof cpu_us, "%llu", (unsigned long long)prof_total_ns(profile) / 1000);
    http_add_header(&exchange->response, "X-Cpu-Us", cpu_us);
    snprintf(path, sizeof path, "%s/%s.prof", exchange->worker->profile_dir, exchange->id);
    int rc = prof_dump_stats(profile, path);
    if (rc != 0)
        fprintf(stderr, "demo-service: %s: %s\n", path, strerror(-rc));
    prof_free(profile);
}
