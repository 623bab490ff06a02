// SPDX-License-Identifier: MIT
// OSProfiler's events and its report tree.
//
// Source: osprofiler 3.4.3, drivers/base.py and profiler.py.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "generated/traces/osprofiler_points.h"
#include "traces/json_source.h"

enum { KEY_SIZE = 160 };

typedef struct pending { // a point of which one event or both have come
    gp_tree_span_t span;
    bool has_start, has_stop;
    bool is_own; // of greenprof's own consumer, which says more
} pending_t;

struct gp_events {
    gp_spans_t *set;
    pending_t *items;
    size_t count, capacity;
    gp_index_t index;
};

gp_events_t *gp_events_create(gp_spans_t *set)
{
    gp_events_t *events = calloc(1, sizeof(*events));
    if (events != NULL)
        events->set = set;
    return events;
}

void gp_events_free(gp_events_t *events)
{
    if (events == NULL)
        return;
    free(events->items);
    gp_index_free(&events->index);
    free(events);
}

// "2026-11-22T18:00:00.123456", UTC. Returns ns since 1970, or -1.
static int64_t read_osprofiler_timestamp(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    int64_t ns = 0, unit = 100000000;
    if (rest == NULL || tm.tm_year < 70 || tm.tm_year > 200)
        return -1;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
            ns += (*rest - '0') * unit;
    return (int64_t)timegm(&tm) * 1000000000 + ns;
}

// A point's name is what its events' names begin with. Returns "-start", "-stop" or NULL.
static const char *read_osprofiler_suffix_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash != NULL && (strcmp(dash, "-start") == 0 || strcmp(dash, "-stop") == 0) ? dash : NULL;
}

bool gp_osprofiler_is_event(const json_t *object)
{
    return read_osprofiler_suffix_of(gp_json_string(object, "name")) != NULL &&
           gp_json_string(object, "trace_id")[0] != '\0' && gp_json_string(object, "base_id")[0] != '\0' &&
           read_osprofiler_timestamp(gp_json_string(object, "timestamp")) >= 0;
}

// The first member of info that tells, else the point's name.
static const char *read_osprofiler_kind_of(const char *point, const json_t *info)
{
    const struct osprofiler_point *found;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)info, key, value)
    {
        found = json_is_object(value) ? osprofiler_point_find(key, strlen(key)) : NULL;
        if (found != NULL && found->member_kind != NULL)
            return found->member_kind;
    }
    found = osprofiler_point_find(point, strlen(point));
    return found != NULL && found->kind != NULL ? found->kind : point;
}

// "GET /servers", a function's name, a statement; else the name of the point.
static void read_osprofiler_name_of(char *text, size_t size, const char *point, const json_t *info)
{
    const json_t *request = json_object_get(info, "request"), *requests = json_object_get(info, "requests");
    const json_t *call = json_is_object(request) ? request : requests;
    const char *statement = gp_json_string(json_object_get(info, "db"), "statement");
    const char *function = gp_json_string(json_object_get(info, "function"), "name");
    if (json_is_object(call))
        snprintf(text, size, "%s %s%s", gp_json_string(call, "method"), gp_json_string(call, "hostname"),
                 gp_json_string(call, "path"));
    else
        snprintf(text, size, "%s", statement[0] ? statement : function[0] ? function : point);
}

// The members of info, those of its objects by the names of both.
static int read_osprofiler_put_fields(gp_spans_t *set, gp_tree_span_t *span, const json_t *event)
{
    json_t *flat = json_object(), *value, *inner;
    const char *key, *inner_key;
    char name[KEY_SIZE];
    json_object_foreach(json_object_get(event, "info"), key, value)
    {
        if (strcmp(key, "host") == 0 || strcmp(key, "greenprof") == 0)
            continue;
        if (!json_is_object(value))
            json_object_set(flat, key, value);
        json_object_foreach(value, inner_key, inner)
        {
            snprintf(name, sizeof(name), "%s.%s", key, inner_key);
            json_object_set_nocheck(flat, name, inner);
        }
    }
    if (json_is_string(json_object_get(event, "project")) && span->record.field_count == 0)
        json_object_set(flat, "project", json_object_get(event, "project"));
    int result = flat != NULL ? gp_json_fields(set, span, flat) : -ENOMEM;
    json_decref(flat);
    return result;
}

static bool read_osprofiler_same_point(const void *owner, uint32_t number, const void *key)
{
    const gp_tree_span_t *a = &((const gp_events_t *)owner)->items[number].span, *b = key;
    return a->trace == b->trace && a->id.hi == b->id.hi && a->id.lo == b->id.lo;
}

static pending_t *read_osprofiler_find_or_add(gp_events_t *events, const gp_tree_span_t *span)
{
    uint64_t hash = gp_hash_more(gp_hash_more(span->id.hi, span->id.lo), span->trace);
    uint32_t number = gp_index_find(&events->index, hash, read_osprofiler_same_point, events, span);
    if (number != GP_INDEX_NONE)
        return &events->items[number];
    if (gp_grow(&events->items, &events->capacity, events->count, sizeof(*events->items)) < 0 ||
        gp_index_add(&events->index, hash, (uint32_t)events->count) < 0)
        return NULL;
    events->items[events->count] = (pending_t){.span = *span};
    return &events->items[events->count++];
}

// Fields that greenprof's own consumer adds, to the end of a span.
static int read_osprofiler_put_own(gp_spans_t *set, pending_t *pending, const json_t *event)
{
    const json_t *info = json_object_get(event, "info"), *own = json_object_get(info, "greenprof");
    gp_tree_span_t *span = &pending->span;
    if (!json_is_object(own))
        return 0;
    pending->is_own = true;
    span->record.flags &= ~(uint32_t)GP_SPAN_NO_TIMES;
    gp_json_times(span, own);
    span->process = gp_spans_process(set, gp_json_string(event, "service"), gp_json_string(info, "host"),
                                     gp_json_number(own, "pid"));
    span->kind = gp_spans_text(set, gp_json_string(own, "kind"));
    span->record.name = gp_spans_text(set, gp_json_string(own, "name"));
    span->record.field_count = 0;
    if (gp_json_string(info, "etype")[0] != '\0')
        span->record.flags |= GP_SPAN_FAILED;
    if (span->process == GP_NO_SPAN || span->kind == NULL || span->record.name == NULL ||
        gp_json_stack(set, span, own) < 0)
        return -ENOMEM;
    return gp_json_fields(set, span, json_object_get(own, "fields"));
}

static int read_osprofiler_put_failure(gp_spans_t *set, gp_tree_span_t *span, const json_t *info)
{
    const char *type = gp_json_string(info, "etype");
    if (type[0] == '\0')
        return 0;
    json_t *error = json_pack("{s:s, s:s}", "error.type", type, "error.message", gp_json_string(info, "message"));
    span->record.flags |= GP_SPAN_FAILED;
    int result = error != NULL ? gp_json_fields(set, span, error) : -ENOMEM;
    json_decref(error);
    return result;
}

static int read_osprofiler_put_names(gp_spans_t *set, gp_tree_span_t *span, const json_t *event)
{
    const char *event_name = gp_json_string(event, "name");
    const json_t *info = json_object_get(event, "info");
    char point[KEY_SIZE], name[1024]; // longer than any name is shown
    snprintf(point, sizeof(point), "%.*s", (int)(read_osprofiler_suffix_of(event_name) - event_name), event_name);
    read_osprofiler_name_of(name, sizeof(name), point, info);
    span->kind = gp_spans_text(set, read_osprofiler_kind_of(point, info));
    span->record.name = gp_spans_text(set, name);
    return span->kind != NULL && span->record.name != NULL ? 0 : -ENOMEM;
}

// Fields of OSProfiler's own libraries: names with the start, or with the stop where no start came.
static int read_osprofiler_put_details(gp_spans_t *set, pending_t *pending, const json_t *event, bool is_start)
{
    if ((is_start || pending->span.record.name == NULL) && read_osprofiler_put_names(set, &pending->span, event) < 0)
        return -ENOMEM;
    if (read_osprofiler_put_fields(set, &pending->span, event) < 0)
        return -ENOMEM;
    return read_osprofiler_put_failure(set, &pending->span, json_object_get(event, "info"));
}

static int read_osprofiler_put_event(gp_events_t *events, pending_t *pending, const json_t *event)
{
    gp_tree_span_t *span = &pending->span;
    int64_t timestamp = read_osprofiler_timestamp(gp_json_string(event, "timestamp"));
    bool is_start = strcmp(read_osprofiler_suffix_of(gp_json_string(event, "name")), "-start") == 0;
    bool is_more = !pending->is_own && json_is_object(json_object_get(json_object_get(event, "info"), "greenprof"));
    if ((is_start ? pending->has_start : pending->has_stop) && !is_more)
        return 0; // came twice: OSProfiler's driver and greenprof's consumer may both have written it
    if (is_start) {
        span->record.start_unix_ns = (uint64_t)timestamp;
        pending->has_start = true;
    } else {
        span->record.end_unix_ns = (uint64_t)timestamp;
        pending->has_stop = true;
    }
    if (read_osprofiler_put_own(events->set, pending, event) < 0)
        return -ENOMEM;
    return pending->is_own ? 0 : read_osprofiler_put_details(events->set, pending, event, is_start);
}

int gp_events_add(gp_events_t *events, const json_t *event)
{
    const char *base = gp_json_string(event, "base_id");
    gp_id128_t base_id = gp_id128_parse(base), parent = gp_id128_parse(gp_json_string(event, "parent_id"));
    if (parent.hi == base_id.hi && parent.lo == base_id.lo)
        parent = (gp_id128_t){0};
    gp_tree_span_t span = {
        .id = gp_id128_parse(gp_json_string(event, "trace_id")),
        .parent_id = parent,
        .trace = gp_spans_trace(events->set, base_id, base),
        .process = gp_spans_process(events->set, gp_json_string(event, "service"),
                                    gp_json_string(json_object_get(event, "info"), "host"), 0),
        .record.flags = GP_SPAN_NO_TIMES,
    };
    if (span.trace == GP_NO_SPAN || span.process == GP_NO_SPAN)
        return -ENOMEM;
    pending_t *pending = read_osprofiler_find_or_add(events, &span);
    return pending != NULL ? read_osprofiler_put_event(events, pending, event) : -ENOMEM;
}

int gp_events_read(gp_events_t *events, const char *text, size_t len)
{
    char error[GP_SPANS_ERROR_SIZE];
    json_t *event = gp_json_read(text, len, error);
    int result = 0;
    if (gp_osprofiler_is_event(event))
        result = gp_events_add(events, event);
    else
        events->set->unreadable++;
    json_decref(event);
    return result;
}

// A point without an end was going on until the last event of its trace, at least.
static int64_t *read_osprofiler_last_times(const gp_events_t *events)
{
    int64_t *last = calloc(events->set->trace_count + 1, sizeof(*last));
    for (size_t i = 0; i < events->count && last != NULL; i++) {
        const gp_tree_span_t *span = &events->items[i].span;
        int64_t time = gp_tree_end_ns(span) > gp_tree_start_ns(span) ? gp_tree_end_ns(span) : gp_tree_start_ns(span);
        if (time > last[span->trace])
            last[span->trace] = time;
    }
    return last;
}

int gp_events_finish(gp_events_t *events)
{
    int64_t *last = read_osprofiler_last_times(events);
    int result = last != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < events->count && result == 0; i++) {
        pending_t *pending = &events->items[i];
        if (!pending->has_start)
            pending->span.record.start_unix_ns = pending->span.record.end_unix_ns;
        if (!pending->has_stop) {
            pending->span.record.end_unix_ns = (uint64_t)last[pending->span.trace];
            pending->span.record.flags |= GP_SPAN_OPEN;
        }
        if (gp_spans_add(events->set, &pending->span) == GP_NO_SPAN)
            result = -ENOMEM;
    }
    free(last);
    gp_events_free(events);
    return result;
}

// A node of the report without its events: milliseconds since the first event.
static int read_osprofiler_add_bare_node(gp_spans_t *set, const json_t *node, const char *base)
{
    const json_t *info = json_object_get(node, "info");
    const char *exception = gp_json_string(info, "exception"), *parent = gp_json_string(node, "parent_id");
    gp_tree_span_t span = {
        .id = gp_id128_parse(gp_json_string(node, "trace_id")),
        .parent_id = gp_id128_parse(strcmp(parent, base) == 0 ? "" : parent),
        .trace = gp_spans_trace(set, gp_id128_parse(base), base),
        .process = gp_spans_process(set, gp_json_string(info, "service"), gp_json_string(info, "host"), 0),
        .kind = gp_spans_text(set, read_osprofiler_kind_of(gp_json_string(info, "name"), info)),
        .record = {.name = gp_spans_text(set, gp_json_string(info, "name")),
                   .start_unix_ns = gp_json_number(info, "started") % (1ull << 40) * 1000000,
                   .end_unix_ns = gp_json_number(info, "finished") % (1ull << 40) * 1000000,
                   .flags = GP_SPAN_NO_TIMES},
    };
    if (exception[0] == '\0')
        span.record.flags |= GP_SPAN_OPEN;
    else if (strcmp(exception, "None") != 0)
        span.record.flags |= GP_SPAN_FAILED;
    if (span.trace == GP_NO_SPAN || span.process == GP_NO_SPAN || span.kind == NULL || span.record.name == NULL)
        return -ENOMEM;
    return gp_spans_add(set, &span) != GP_NO_SPAN ? 0 : -ENOMEM;
}

static int read_osprofiler_add_node(gp_events_t *events, const json_t *node, const char *base)
{
    static const char prefix[] = "meta.raw_payload.";
    json_t *value;
    const char *key;
    int result = 0;
    bool found = false;
    json_object_foreach(json_object_get(node, "info"), key, value)
    {
        if (strncmp(key, prefix, sizeof(prefix) - 1) != 0 || !gp_osprofiler_is_event(value) || result != 0)
            continue;
        found = true;
        result = gp_events_add(events, value);
    }
    if (result != 0 || found)
        return result;
    if (gp_json_string(node, "trace_id")[0] != '\0')
        return read_osprofiler_add_bare_node(events->set, node, base);
    events->set->unreadable++;
    return 0;
}

typedef struct todo {
    const json_t **nodes;
    size_t count, capacity;
} todo_t;

static int read_osprofiler_push_children(todo_t *todo, const json_t *node)
{
    size_t number;
    json_t *child;
    json_array_foreach(json_object_get(node, "children"), number, child)
    {
        if (gp_grow(&todo->nodes, &todo->capacity, todo->count, sizeof(*todo->nodes)) < 0)
            return -ENOMEM;
        todo->nodes[todo->count++] = child;
    }
    return 0;
}

int gp_osprofiler_report(gp_spans_t *set, const json_t *report)
{
    const json_t *first = json_array_get(json_object_get(report, "children"), 0);
    const char *base = gp_json_string(first, "parent_id"); // that of a root
    gp_events_t *events = gp_events_create(set);
    todo_t todo = {0};
    int result = events != NULL ? read_osprofiler_push_children(&todo, report) : -ENOMEM;
    while (result == 0 && todo.count > 0) {
        const json_t *node = todo.nodes[--todo.count];
        result = read_osprofiler_add_node(events, node, base);
        if (result == 0)
            result = read_osprofiler_push_children(&todo, node);
    }
    free(todo.nodes);
    if (result == 0)
        return gp_events_finish(events);
    gp_events_free(events);
    return result;
}
