// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/write/text.h"
#include "traces/json_source.h"

static int read_json_hex4(const char *text)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static bool read_json_is_surrogate(int value, int which) // 0xd800: the first of a pair, 0xdc00: the second
{
    return value >= 0 && (value & 0xfc00) == which;
}

// Escapes that name no character: halves of a pair (Python writes them for bytes outside UTF-8), and NUL.
static void read_json_repair_escapes(char *text, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++) {
        if (text[i] != '\\')
            continue;
        int value = text[i + 1] == 'u' && i + 6 <= len ? read_json_hex4(text + i + 2) : -1;
        bool pair = read_json_is_surrogate(value, 0xd800) && i + 12 <= len && text[i + 6] == '\\' &&
                    text[i + 7] == 'u' && read_json_is_surrogate(read_json_hex4(text + i + 8), 0xdc00);
        if (pair) {
            i += 11;
            continue;
        }
        if (value == 0 || read_json_is_surrogate(value, 0xd800) || read_json_is_surrogate(value, 0xdc00))
            memcpy(text + i + 2, "fffd", 4);
        i++;
    }
}

// Length of the UTF-8 sequence at `text`, 0 = none.
static size_t read_json_utf8_len(const char *text, size_t len)
{
    char end[5] = {0}; // never look behind the text
    memcpy(end, text, len < 4 ? len : 4);
    return gp_text_utf8_len(end);
}

static size_t read_json_character_len(const char *text, size_t len)
{
    unsigned char c = (unsigned char)*text;
    return c >= ' ' && c < 0x80 ? 1 : read_json_utf8_len(text, len);
}

// Returns a malloc()ed copy, ended by NUL, or NULL.
static char *read_json_repair(const char *text, size_t len, size_t *repaired_len)
{
    size_t bad = 0, at = 0;
    for (size_t i = 0; i < len;) {
        size_t one = read_json_character_len(text + i, len - i);
        bad += one == 0;
        i += one ? one : 1;
    }
    char *copy = malloc(len + 2 * bad + 1);
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < len;) {
        size_t one = read_json_character_len(text + i, len - i);
        memcpy(copy + at, one ? text + i : "\xef\xbf\xbd", one ? one : 3);
        at += one ? one : 3;
        i += one ? one : 1;
    }
    read_json_repair_escapes(copy, at);
    copy[at] = '\0';
    *repaired_len = at;
    return copy;
}

// Numbers that no 64 bits hold are read as approximate ones.
static json_t *read_json_parse(const char *text, size_t len, json_error_t *error)
{
    json_t *json = json_loadb(text, len, JSON_DECODE_ANY, error);
    if (json == NULL && json_error_code(error) == json_error_numeric_overflow)
        json = json_loadb(text, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, error);
    return json;
}

static json_t *read_json_repaired(const char *text, size_t len, char error[GP_SPANS_ERROR_SIZE])
{
    json_error_t what;
    json_t *json = read_json_parse(text, len, &what);
    if (json == NULL)
        snprintf(error, GP_SPANS_ERROR_SIZE, "is no JSON that holds spans: line %d: %s", what.line, what.text);
    return json;
}

json_t *gp_json_read(const char *text, size_t len, char error[GP_SPANS_ERROR_SIZE])
{
    size_t repaired_len;
    char *repaired = read_json_repair(text, len, &repaired_len);
    if (repaired == NULL) {
        snprintf(error, GP_SPANS_ERROR_SIZE, "%s", strerror(ENOMEM));
        return NULL;
    }
    json_t *json = read_json_repaired(repaired, repaired_len, error);
    free(repaired);
    return json;
}

const char *gp_json_string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

uint64_t gp_json_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double real = json_number_value(value);
    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    return real > 0 && real < 9e18 ? (uint64_t)real : 0;
}

static int read_json_add_field(gp_spans_t *set, prof_field_t *field, const char *key, const json_t *value)
{
    char *made = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS);
    const char *text = json_is_string(value) ? json_string_value(value) : made;
    field->key = gp_spans_text(set, key);
    field->value = text != NULL ? gp_spans_text(set, text) : NULL;
    free(made);
    return field->key != NULL && field->value != NULL ? 0 : -ENOMEM;
}

int gp_json_fields(gp_spans_t *set, gp_tree_span_t *span, const json_t *object)
{
    size_t count = json_object_size(object), used = span->record.field_count;
    prof_field_t *fields;
    const char *key;
    json_t *value;
    if (used + count > GP_TREE_FIELDS_MAX)
        count = GP_TREE_FIELDS_MAX - used;
    if (count == 0)
        return 0;
    fields = gp_arena_alloc(&set->arena, (used + count) * sizeof(*fields));
    if (fields == NULL)
        return -ENOMEM;
    if (used > 0)
        memcpy(fields, span->record.fields, used * sizeof(*fields));
    span->record.fields = fields;
    json_object_foreach((json_t *)object, key, value)
    {
        if (span->record.field_count == used + count)
            break;
        if (read_json_add_field(set, &fields[span->record.field_count], key, value) < 0)
            return -ENOMEM;
        span->record.field_count++;
    }
    return 0;
}

static uint32_t read_json_flags(const json_t *flags)
{
    uint32_t result = 0;
    size_t number;
    json_t *flag;
    json_array_foreach(flags, number, flag)
    {
        const char *name = json_string_value(flag);
        for (const gp_span_flag_name_t *known = gp_span_flag_names; name != NULL && known->flag != 0; known++)
            if (strcmp(known->name, name) == 0)
                result |= known->flag;
    }
    return result & ~(uint32_t)GP_TREE_FLAGS; // found out anew
}

void gp_json_times(gp_tree_span_t *span, const json_t *object)
{
#define READ(field, shown, key) span->record.shown = gp_json_number(object, key);
    GP_SPAN_SHOWN(READ)
    span->record.cpu_ns = gp_json_number(object, "cpu_ns");
    span->record.ready_ns = gp_json_number(object, "ready_ns");
    span->record.parked_ns = gp_json_number(object, "parked_ns");
    span->record.blocked_ns = gp_json_number(object, "blocked_ns");
    span->record.preempted_ns = gp_json_number(object, "preempted_ns");
    span->record.waiting_ns = gp_json_number(object, "waiting_ns");
    span->record.switches = gp_json_number(object, "switches");
    span->record.flags |= read_json_flags(json_object_get(object, "flags"));
    if (!json_is_number(json_object_get(object, "cpu_ns")))
        span->record.flags |= GP_SPAN_NO_TIMES;
}

int gp_json_stack(gp_spans_t *set, gp_tree_span_t *span, const json_t *object)
{
    const char *stack = gp_json_string(object, "stack");
    if (stack[0] != '\0')
        span->record.stack = gp_spans_text(set, stack);
    return stack[0] != '\0' && span->record.stack == NULL ? -ENOMEM : 0;
}

static bool read_json_is_span(const json_t *object)
{
    return gp_json_string(object, "trace")[0] != '\0' && gp_json_string(object, "span")[0] != '\0' &&
           json_is_number(json_object_get(object, "start_unix_ns"));
}

static uint64_t read_json_time_of(const json_t *object, const char *key)
{
    uint64_t time = gp_json_number(object, key);
    return time < INT64_MAX / 4 ? time : INT64_MAX / 4;
}

// The work of a request, as `trace show --json` writes it.
static int read_json_work(gp_spans_t *set, gp_tree_span_t *span, const json_t *object)
{
    gp_tree_work_t *work = json_is_object(object) ? gp_arena_alloc(&set->arena, sizeof(*work)) : NULL;
    if (work == NULL)
        return json_is_object(object) ? -ENOMEM : 0;
    *work = (gp_tree_work_t){
        .coroutines = gp_json_number(object, "coroutines"),
        .cpu = gp_json_number(object, "cpu_ns"),
        .ready = gp_json_number(object, "ready_ns"),
        .parked = gp_json_number(object, "parked_ns"),
        .blocked = gp_json_number(object, "blocked_ns"),
        .preempted = gp_json_number(object, "preempted_ns"),
        .waiting = gp_json_number(object, "waiting_ns"),
    };
    span->work = work;
    return 0;
}

static int read_json_add_span(gp_spans_t *set, const json_t *object)
{
    const char *trace = gp_json_string(object, "trace");
    gp_tree_span_t span = {
        .id = gp_id128_parse(gp_json_string(object, "span")),
        .parent_id = gp_id128_parse(gp_json_string(object, "parent")),
        .trace = gp_spans_trace(set, gp_id128_parse(trace), trace),
        .process = gp_spans_process(set, gp_json_string(object, "service"), gp_json_string(object, "host"),
                                    gp_json_number(object, "pid")),
        .kind = gp_spans_text(set, gp_json_string(object, "kind")),
        .record = {.name = gp_spans_text(set, gp_json_string(object, "name")),
                   .start_unix_ns = read_json_time_of(object, "start_unix_ns"),
                   .end_unix_ns = read_json_time_of(object, "end_unix_ns")},
    };
    if (span.trace == GP_NO_SPAN || span.process == GP_NO_SPAN || span.kind == NULL || span.record.name == NULL)
        return -ENOMEM;
    if (json_is_true(json_object_get(object, "remote_parent")))
        span.record.flags |= GP_SPAN_REMOTE_PARENT;
    gp_json_times(&span, object);
    if (gp_json_stack(set, &span, object) < 0 || read_json_work(set, &span, json_object_get(object, "request")) < 0 ||
        gp_json_fields(set, &span, json_object_get(object, "fields")) < 0)
        return -ENOMEM;
    return gp_spans_add(set, &span) != GP_NO_SPAN ? 0 : -ENOMEM;
}

// Add a value: a span, an event, or a container of many.
static int read_json_add_value(gp_spans_t *set, gp_events_t *events, const json_t *value)
{
    if (read_json_is_span(value))
        return read_json_add_span(set, value);
    if (gp_osprofiler_is_event(value))
        return gp_events_add(events, value);
    set->unreadable++;
    return 0;
}

static int read_json_add_values(gp_spans_t *set, gp_events_t *events, const json_t *values)
{
    size_t number;
    json_t *value;
    int result = 0;
    json_array_foreach(values, number, value)
    {
        if (result == 0)
            result = read_json_add_value(set, events, value);
    }
    return result;
}

static int read_json_add_document(gp_spans_t *set, gp_events_t *events, const json_t *document,
                                  char error[GP_SPANS_ERROR_SIZE])
{
    if (json_is_array(document))
        return read_json_add_values(set, events, document);
    if (json_is_array(json_object_get(document, "spans")))
        return read_json_add_values(set, events, json_object_get(document, "spans"));
    if (json_is_array(json_object_get(document, "children")))
        return gp_osprofiler_report(set, document);
    if (read_json_is_span(document) || gp_osprofiler_is_event(document))
        return read_json_add_value(set, events, document);
    snprintf(error, GP_SPANS_ERROR_SIZE, "is JSON, but holds neither spans nor OSProfiler's report");
    return -EINVAL;
}

// A line each; the last one may be half written.
static int read_json_add_lines(gp_spans_t *set, gp_events_t *events, const char *text, size_t len)
{
    int result = 0;
    for (size_t at = 0; at < len && result == 0;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line = end != NULL ? (size_t)(end - text) - at : len - at;
        json_error_t error;
        bool blank = strspn(text + at, " \t\r") >= line;
        json_t *value = blank ? NULL : read_json_parse(text + at, line, &error);
        if (value != NULL)
            result = read_json_add_value(set, events, value);
        else if (!blank)
            set->unreadable++;
        json_decref(value);
        at += line + 1;
    }
    return result;
}

// Is the first line that says something an object of its own?
static bool read_json_is_lines(const char *text, size_t len)
{
    size_t start = strspn(text, " \t\r\n");
    const char *end = start < len ? memchr(text + start, '\n', len - start) : NULL;
    json_error_t error;
    json_t *value = end != NULL ? read_json_parse(text + start, (size_t)(end - text) - start, &error) : NULL;
    bool result = read_json_is_span(value) || gp_osprofiler_is_event(value);
    json_decref(value);
    return result;
}

static int read_json_text(gp_spans_t *set, gp_events_t *events, const char *text, size_t len,
                          char error[GP_SPANS_ERROR_SIZE])
{
    if (read_json_is_lines(text, len))
        return read_json_add_lines(set, events, text, len);
    json_t *document = read_json_repaired(text, len, error);
    int result = document != NULL ? read_json_add_document(set, events, document, error) : -EINVAL;
    json_decref(document);
    return result;
}

int gp_spans_read_json(gp_spans_t *set, const char *text, size_t len, char error[GP_SPANS_ERROR_SIZE])
{
    size_t repaired_len = 0;
    char *repaired = read_json_repair(text, len, &repaired_len);
    gp_events_t *events = gp_events_create(set);
    int result = repaired != NULL && events != NULL ? 0 : -ENOMEM;
    if (result == 0)
        result = read_json_text(set, events, repaired, repaired_len, error);
    free(repaired);
    if (result == 0)
        return gp_events_finish(events);
    gp_events_free(events);
    return result;
}

int gp_spans_read_all(int fd, char **text, size_t *len)
{
    size_t capacity = 0;
    ssize_t got = 0;
    *text = NULL;
    *len = 0;
    do {
        *len += (size_t)got;
        if (gp_reserve(text, &capacity, *len + 65536, 1) < 0)
            return -ENOMEM;
        got = read(fd, *text + *len, 65535);
    } while (got > 0);
    (*text)[*len] = '\0';
    return got == 0 ? 0 : -errno;
}
