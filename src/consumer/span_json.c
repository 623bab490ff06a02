// SPDX-License-Identifier: MIT
#include "consumer/span_json.h"

#include <string.h>

#include "model/span_kind.h"

static void put_json(gp_bytes_t *into, const char *key, const char *text)
{
    gp_bytes_text(into, key);
    gp_bytes_json(into, text, strlen(text));
}

static void put_number(gp_bytes_t *into, const char *key, uint64_t number)
{
    gp_bytes_text(into, key);
    gp_bytes_number(into, number);
}

static void put_ids(gp_bytes_t *into, const prof_span_record_t *span)
{
    char trace[PROF_TRACE_HEX_SIZE];
    prof_trace_to_hex(&span->trace, trace);
    gp_bytes_text(into, "{\"v\":1,\"trace\":\"");
    gp_bytes_text(into, trace);
    gp_bytes_text(into, "\",\"span\":\"");
    gp_bytes_hex(into, span->id);
    gp_bytes_text(into, "\",\"parent\":");
    if (span->parent_id != 0) {
        gp_bytes_text(into, "\"");
        gp_bytes_hex(into, span->parent_id);
        gp_bytes_text(into, "\"");
    } else {
        gp_bytes_text(into, "null");
    }
    gp_bytes_text(into, span->flags & PROF_SPAN_RECORD_REMOTE_PARENT ? ",\"remote_parent\":true"
                                                                     : ",\"remote_parent\":false");
}

void gp_span_json_times(gp_bytes_t *into, const prof_span_record_t *span)
{
    put_number(into, "\"cpu_ns\":", span->cpu_ns);
    put_number(into, ",\"ready_ns\":", span->ready_ns);
    put_number(into, ",\"parked_ns\":", span->parked_ns);
    put_number(into, ",\"blocked_ns\":", span->blocked_ns);
    put_number(into, ",\"preempted_ns\":", span->preempted_ns);
    put_number(into, ",\"waiting_ns\":", span->waiting_ns);
    put_number(into, ",\"switches\":", span->switches);
}

static void put_flags(gp_bytes_t *into, uint32_t flags)
{
    static const struct {
        uint32_t flag;
        const char *text;
    } names[] = {{PROF_SPAN_RECORD_OPEN, "\"open\""},         {PROF_SPAN_RECORD_REPAIRED, "\"repaired\""},
                 {PROF_SPAN_RECORD_FAILED, "\"failed\""},     {PROF_SPAN_RECORD_IMPLICIT, "\"implicit\""},
                 {PROF_SPAN_RECORD_NO_TIMES, "\"no_times\""}, {PROF_SPAN_RECORD_RESTED, "\"rested\""}};
    const char *between = "";
    gp_bytes_text(into, ",\"flags\":[");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!(flags & names[i].flag))
            continue;
        gp_bytes_text(into, between);
        gp_bytes_text(into, names[i].text);
        between = ",";
    }
    gp_bytes_text(into, "]");
}

static bool is_first_of_its_key(const prof_span_record_t *span, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (strcmp(span->fields[i].key, span->fields[number].key) == 0)
            return false;
    return true;
}

void gp_span_json_fields(gp_bytes_t *into, const prof_span_record_t *span)
{
    const char *between = "";
    gp_bytes_text(into, "\"fields\":{");
    for (size_t i = 0; i < span->field_count; i++) {
        if (!is_first_of_its_key(span, i))
            continue;
        put_json(into, between, span->fields[i].key);
        put_json(into, ":", span->fields[i].value);
        between = ",";
    }
    gp_bytes_text(into, "}");
}

void gp_span_json(gp_bytes_t *into, const prof_span_record_t *span)
{
    put_ids(into, span);
    put_json(into, ",\"kind\":", gp_span_kind_text(span->kind));
    put_json(into, ",\"name\":", span->name);
    put_json(into, ",\"service\":", span->service);
    put_json(into, ",\"host\":", span->host);
    put_number(into, ",\"pid\":", (uint64_t)span->pid);
    put_number(into, ",\"coroutine\":", span->coroutine_id);
    put_number(into, ",\"start_unix_ns\":", span->start_unix_ns);
    put_number(into, ",\"end_unix_ns\":", span->end_unix_ns);
    gp_bytes_text(into, ",");
    gp_span_json_times(into, span);
    if (span->stack != NULL)
        put_json(into, ",\"stack\":", span->stack);
    put_flags(into, span->flags);
    gp_bytes_text(into, ",");
    gp_span_json_fields(into, span);
    gp_bytes_text(into, "}\n");
}
