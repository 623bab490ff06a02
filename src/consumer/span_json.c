// SPDX-License-Identifier: MIT
#include "consumer/span_json.h"

#include <string.h>

#include "base/hex.h"
#include "model/span.h"

enum { SPAN_HEX_SIZE = 17 };

static void span_json_put_json(gp_reply_bytes_t *into, const char *key, const char *text)
{
    gp_bytes_text(into, key);
    gp_bytes_json(into, text, strlen(text));
}

static void span_json_put_number(gp_reply_bytes_t *into, const char *key, uint64_t number)
{
    gp_bytes_text(into, key);
    gp_bytes_number(into, number);
}

void gp_span_json_times(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    span_json_put_number(into, "\"cpu_ns\":", span->cpu_ns);
    span_json_put_number(into, ",\"ready_ns\":", span->ready_ns);
    span_json_put_number(into, ",\"parked_ns\":", span->parked_ns);
    span_json_put_number(into, ",\"blocked_ns\":", span->blocked_ns);
    span_json_put_number(into, ",\"preempted_ns\":", span->preempted_ns);
    span_json_put_number(into, ",\"waiting_ns\":", span->waiting_ns);
    span_json_put_number(into, ",\"switches\":", span->switches);
}

static void span_json_put_flags(gp_reply_bytes_t *into, uint32_t flags)
{
    const char *between = "";
    gp_bytes_text(into, "\"flags\":[");
    for (const gp_span_flag_name_t *known = gp_span_flag_names; known->flag != 0; known++) {
        if (!(flags & known->flag))
            continue;
        span_json_put_json(into, between, known->name);
        between = ",";
    }
    gp_bytes_text(into, "]");
}

static bool span_json_is_first_of_its_key(const prof_span_record_t *span, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (strcmp(span->fields[i].key, span->fields[number].key) == 0)
            return false;
    return true;
}

void gp_span_json_fields(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    const char *between = "";
    gp_bytes_text(into, "\"fields\":{");
    for (size_t i = 0; i < span->field_count; i++) {
        if (!span_json_is_first_of_its_key(span, i))
            continue;
        span_json_put_json(into, between, span->fields[i].key);
        span_json_put_json(into, ":", span->fields[i].value);
        between = ",";
    }
    gp_bytes_text(into, "}");
}

void gp_span_json_members(gp_reply_bytes_t *into, const prof_span_record_t *span, const gp_span_names_t *names)
{
    span_json_put_json(into, "\"v\":1,\"trace\":", names->trace);
    span_json_put_json(into, ",\"span\":", names->span);
    if (names->parent != NULL)
        span_json_put_json(into, ",\"parent\":", names->parent);
    else
        gp_bytes_text(into, ",\"parent\":null");
    gp_bytes_text(into, span->flags & PROF_SPAN_RECORD_REMOTE_PARENT ? ",\"remote_parent\":true"
                                                                     : ",\"remote_parent\":false");
    span_json_put_json(into, ",\"kind\":", names->kind);
    span_json_put_json(into, ",\"name\":", span->name);
    span_json_put_json(into, ",\"service\":", span->service);
    span_json_put_json(into, ",\"host\":", span->host);
    span_json_put_number(into, ",\"pid\":", names->pid);
#define PUT(field, shown, key) span_json_put_number(into, ",\"" key "\":", span->shown);
    GP_SPAN_SHOWN(PUT)
    span_json_put_number(into, ",\"start_unix_ns\":", span->start_unix_ns);
    span_json_put_number(into, ",\"end_unix_ns\":", span->end_unix_ns);
    gp_bytes_text(into, ",");
    if (names->has_times) {
        gp_span_json_times(into, span);
        gp_bytes_text(into, ",");
    }
    if (span->stack != NULL) {
        span_json_put_json(into, "\"stack\":", span->stack);
        gp_bytes_text(into, ",");
    }
    span_json_put_flags(into, span->flags);
    gp_bytes_text(into, ",");
    gp_span_json_fields(into, span);
}

static const char *span_json_hex(uint64_t id, char text[SPAN_HEX_SIZE])
{
    uint8_t bytes[8];
    gp_hex_from_u64(id, bytes);
    gp_hex_write(text, bytes, sizeof(bytes));
    return text;
}

void gp_span_json(gp_reply_bytes_t *into, const prof_span_record_t *span)
{
    char trace[PROF_TRACE_HEX_SIZE], id[SPAN_HEX_SIZE], parent[SPAN_HEX_SIZE];
    prof_trace_to_hex(&span->trace, trace);
    const gp_span_names_t names = {.trace = trace,
                                   .span = span_json_hex(span->id, id),
                                   .parent = span->parent_id != 0 ? span_json_hex(span->parent_id, parent) : NULL,
                                   .kind = gp_span_kind_text(span->kind),
                                   .pid = (uint64_t)span->pid,
                                   .has_times = true};
    gp_bytes_text(into, "{");
    gp_span_json_members(into, span, &names);
    gp_bytes_text(into, "}\n");
}
