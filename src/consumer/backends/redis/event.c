// SPDX-License-Identifier: MIT
#include "consumer/backends/redis/event.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "consumer/span_json.h"
#include "model/span_kind.h"

static void event_put_json(gp_reply_bytes_t *into, const char *before, const char *text)
{
    gp_bytes_text(into, before);
    gp_bytes_json(into, text, strlen(text));
}

// The value of the first of these keys (ended by NULL) that the span has.
static const char *event_field(const prof_span_record_t *span, const char *const *keys, const char *otherwise)
{
    for (; *keys != NULL; keys++)
        for (size_t i = 0; i < span->field_count; i++)
            if (strcmp(span->fields[i].key, *keys) == 0)
                return span->fields[i].value;
    return otherwise;
}
#define FIELD(span, otherwise, ...) event_field(span, (const char *const[]){__VA_ARGS__, NULL}, otherwise)

static const char *event_type_of(const prof_span_record_t *span)
{
    switch (span->kind) {
    case PROF_SPAN_REST_DISPATCH:
        return "wsgi";
    case PROF_SPAN_REST_CALL:
        return "http";
    case PROF_SPAN_RPC_CALL:
    case PROF_SPAN_RPC_DISPATCH:
        return "rpc";
    case PROF_SPAN_DATABASE:
        return "db";
    default:
        return gp_span_kind_text(span->kind);
    }
}

static void event_put_uuid(gp_reply_bytes_t *into, const char *before, const prof_trace_id_t *trace, uint64_t span_id)
{
    char text[PROF_TRACE_UUID_SIZE];
    prof_trace_id_t id = *trace;
    if (span_id != 0) {
        memset(id.bytes, 0, 8);
        for (int i = 0; i < 8; i++)
            id.bytes[15 - i] = (uint8_t)(span_id >> 8 * i);
    }
    prof_trace_to_uuid(&id, text);
    event_put_json(into, before, text);
}

static void event_put_time(gp_reply_bytes_t *into, const char *before, uint64_t unix_ns)
{
    char text[64];
    struct tm parts;
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    gmtime_r(&seconds, &parts);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + len, sizeof(text) - len, ".%06u", (unsigned)(unix_ns % 1000000000u / 1000));
    event_put_json(into, before, text);
}

// "GET /servers?all=1" is a method, a path and a query.
static void event_put_request(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    const char *space = strchr(span->name, ' '), *path = space != NULL ? space + 1 : span->name;
    size_t path_len = strcspn(path, "?");
    bool is_call = span->kind == PROF_SPAN_REST_CALL;
    gp_bytes_text(into, is_call ? "\"requests\":{\"method\":" : "\"request\":{\"method\":");
    gp_bytes_json(into, span->name, space != NULL ? (size_t)(space - span->name) : 0);
    gp_bytes_text(into, ",\"path\":");
    gp_bytes_json(into, path, path_len);
    event_put_json(
        into, ",\"query\":", FIELD(span, path[path_len] == '?' ? path + path_len + 1 : "", "url.query", "http.query"));
    event_put_json(into, ",\"scheme\":", FIELD(span, "http", "url.scheme", "http.scheme"));
    if (is_call)
        event_put_json(into, ",\"hostname\":", FIELD(span, "", "server.address", "http.host", "peer"));
    gp_bytes_text(into, "},");
}

static void event_put_what(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    if (span->kind == PROF_SPAN_REST_DISPATCH || span->kind == PROF_SPAN_REST_CALL) {
        event_put_request(into, span);
    } else if (span->kind == PROF_SPAN_DATABASE) {
        event_put_json(into,
                       "\"db\":{\"statement\":", FIELD(span, span->name, "db.query.text", "db.statement", "statement"));
        gp_bytes_text(into, ",\"params\":{}},");
    } else {
        event_put_json(into, "\"function\":{\"name\":", span->name);
        gp_bytes_text(into, ",\"args\":\"\",\"kwargs\":\"\"},");
    }
}

static void event_put_outcome(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    if (span->flags & PROF_SPAN_RECORD_FAILED) {
        event_put_json(into, "\"etype\":", FIELD(span, "error", "error.type"));
        event_put_json(into, ",\"message\":", FIELD(span, "", "error.message"));
        gp_bytes_text(into, ",");
    }
    event_put_json(into, "\"greenprof\":{\"kind\":", gp_span_kind_text(span->kind));
    event_put_json(into, ",\"name\":", span->name);
    gp_bytes_text(into, ",\"pid\":");
    gp_bytes_number(into, (uint64_t)span->pid);
    gp_bytes_text(into, ",\"coroutine\":");
    gp_bytes_number(into, span->coroutine_id);
    gp_bytes_text(into, ",");
    gp_span_json_times(into, span);
    if (span->stack != NULL)
        event_put_json(into, ",\"stack\":", span->stack);
    gp_bytes_text(into, ",");
    gp_span_json_fields(into, span);
    gp_bytes_text(into, "},");
}

// A parent that OSProfiler made has a whole UUID: the field keeps it.
static void event_put_parent(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    prof_trace_id_t foreign;
    const char *text = FIELD(span, NULL, "osprofiler.parent");
    bool has_parent = span->parent_id != 0 && span->parent_id != span->id; // its own child would be shown nowhere
    if ((span->flags & PROF_SPAN_RECORD_REMOTE_PARENT) && text != NULL && prof_trace_parse(text, &foreign) == 0)
        event_put_uuid(into, ",\"parent_id\":", &foreign, 0);
    else
        event_put_uuid(into, ",\"parent_id\":", &span->trace, has_parent ? span->parent_id : 0);
}

void gp_redis_event(gp_reply_bytes_t *into, const prof_span_record_t *span, bool is_stop)
{
    uint64_t end = span->end_unix_ns > span->start_unix_ns ? span->end_unix_ns : span->start_unix_ns;
    gp_bytes_text(into, "{\"name\":\"");
    gp_bytes_text(into, event_type_of(span));
    gp_bytes_text(into, is_stop ? "-stop\"," : "-start\",");
    event_put_uuid(into, "\"base_id\":", &span->trace, 0);
    event_put_uuid(into, ",\"trace_id\":", &span->trace, span->id);
    event_put_parent(into, span);
    event_put_time(into, ",\"timestamp\":", is_stop ? end : span->start_unix_ns);
    gp_bytes_text(into, ",\"info\":{");
    if (is_stop)
        event_put_outcome(into, span);
    else
        event_put_what(into, span);
    event_put_json(into, "\"host\":", span->host);
    event_put_json(into, "},\"project\":null,\"service\":", span->service);
    gp_bytes_text(into, "}");
}

void gp_redis_error_mark(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    event_put_uuid(into, "{\"base_id\":", &span->trace, 0);
    event_put_time(into, ",\"timestamp\":", span->end_unix_ns);
    gp_bytes_text(into, "}");
}
