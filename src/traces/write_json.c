// SPDX-License-Identifier: MIT
// The JSON of a trace: a document that the reader of JSON takes as well. Times of a span are those of its own clock.
#include "export/write/json_text.h"
#include "traces/write.h"

static void put_flags(gp_json_t *json, const gp_tree_span_t *span)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = {{GP_TREE_OPEN, "open"},           {GP_TREE_REPAIRED, "repaired"}, {GP_TREE_FAILED, "failed"},
                 {GP_TREE_IMPLICIT, "implicit"},   {GP_TREE_NO_TIMES, "no_times"}, {GP_TREE_CRITICAL, "critical"},
                 {GP_TREE_LOST, "parent_missing"}, {GP_TREE_CIRCLE, "circle"},     {GP_TREE_TWICE, "id_used_twice"},
                 {GP_TREE_BACKWARDS, "backwards"}, {GP_TREE_RESTED, "rested"}};
    gp_json_key(json, "flags");
    gp_json_open(json, '[');
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span->flags & names[i].flag)
            gp_json_text(json, names[i].name);
    gp_json_close(json, ']');
}

static void put_times(gp_json_t *json, const gp_tree_span_t *span)
{
    if (span->flags & GP_TREE_NO_TIMES)
        return;
    gp_json_key_uint(json, "cpu_ns", span->cpu_ns);
    gp_json_key_uint(json, "ready_ns", span->ready_ns);
    gp_json_key_uint(json, "parked_ns", span->parked_ns);
    gp_json_key_uint(json, "blocked_ns", span->blocked_ns);
    gp_json_key_uint(json, "preempted_ns", span->preempted_ns);
    gp_json_key_uint(json, "waiting_ns", span->waiting_ns);
    gp_json_key_uint(json, "switches", span->switches);
}

static void put_work(gp_json_t *json, const gp_tree_work_t *work)
{
    gp_json_key(json, "request");
    gp_json_open(json, '{');
    gp_json_key_uint(json, "coroutines", work->coroutines);
    gp_json_key_uint(json, "cpu_ns", work->cpu);
    gp_json_key_uint(json, "ready_ns", work->ready);
    gp_json_key_uint(json, "parked_ns", work->parked);
    gp_json_key_uint(json, "blocked_ns", work->blocked);
    gp_json_key_uint(json, "preempted_ns", work->preempted);
    gp_json_key_uint(json, "waiting_ns", work->waiting);
    gp_json_close(json, '}');
}

static void put_span(gp_json_t *json, const gp_tree_view_t *view, const gp_tree_span_t *span, const char *trace)
{
    const gp_tree_process_t *process = &view->set->processes[span->process];
    char id[GP_ID128_SIZE];
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_uint(json, "v", 1);
    gp_json_key_text(json, "trace", trace);
    gp_json_key_text(json, "span", gp_id128_of_span(span->id, id));
    gp_json_key(json, "parent");
    if (gp_id128_is_none(span->parent_id))
        gp_json_null(json);
    else
        gp_json_text(json, gp_id128_of_span(span->parent_id, id));
    gp_json_key(json, "remote_parent");
    gp_json_bool(json, span->flags & GP_TREE_REMOTE_PARENT);
    gp_json_key_text(json, "kind", span->kind);
    gp_json_key_text(json, "name", span->name);
    gp_json_key_text(json, "service", process->service);
    gp_json_key_text(json, "host", process->host);
    gp_json_key_uint(json, "pid", process->pid);
    gp_json_key_uint(json, "coroutine", span->coroutine);
    gp_json_key_uint(json, "start_unix_ns", (uint64_t)span->start_ns);
    gp_json_key_uint(json, "end_unix_ns", (uint64_t)span->end_ns);
    put_times(json, span);
    if (span->work != NULL)
        put_work(json, span->work);
    put_flags(json, span);
    gp_json_key(json, "fields");
    gp_json_open(json, '{');
    for (uint32_t i = 0; i < span->field_count; i++)
        if (gp_tree_field(span, span->fields[i].key) == span->fields[i].value) // the first of its key
            gp_json_key_text(json, span->fields[i].key, span->fields[i].value);
    gp_json_close(json, '}');
    if (span->stack != NULL)
        gp_json_key_text(json, "stack", span->stack);
    gp_json_key_uint(json, "depth", span->depth);
    gp_json_key(json, "from_ns");
    gp_json_int(json, span->from_ns - view->trace->from_ns);
    gp_json_key_uint(json, "duration_ns", gp_tree_span_ns(span));
    gp_json_key_uint(json, "self_ns", span->self_ns);
    gp_json_key_uint(json, "critical_ns", span->critical_ns);
    gp_json_close(json, '}');
}

static void put_clocks(gp_json_t *json, const gp_spans_t *set)
{
    static const char *const states[] = {"alone", "agrees", "moved", "contradicts"};
    gp_json_key(json, "clocks");
    gp_json_open(json, '[');
    for (size_t i = 0; i < set->process_count; i++) {
        const gp_tree_process_t *process = &set->processes[i];
        gp_json_line(json);
        gp_json_open(json, '{');
        gp_json_key_text(json, "service", process->service);
        gp_json_key_text(json, "host", process->host);
        gp_json_key_uint(json, "pid", process->pid);
        gp_json_key_text(json, "clock", states[process->clock]);
        gp_json_key(json, "offset_ns");
        gp_json_int(json, process->offset_ns);
        gp_json_key_uint(json, "within_ns", process->within_ns);
        gp_json_key_uint(json, "pairs", process->pairs);
        gp_json_close(json, '}');
    }
    gp_json_close(json, ']');
}

static void put_head(gp_json_t *json, const gp_spans_t *set, const gp_tree_trace_t *trace, const char *id)
{
    const gp_tree_span_t *root = &set->items[trace->root];
    gp_json_key_text(json, "trace", id);
    gp_json_key(json, "start_unix_ns");
    gp_json_int(json, trace->from_ns);
    gp_json_key_uint(json, "duration_ns", (uint64_t)(trace->to_ns - trace->from_ns));
    gp_json_key_uint(json, "services", trace->services);
    gp_json_key_uint(json, "span_count", trace->count);
    gp_json_key(json, "failed");
    gp_json_bool(json, trace->failed);
    gp_json_key(json, "root");
    gp_json_open(json, '{');
    gp_json_key_text(json, "service", set->processes[root->process].service);
    gp_json_key_text(json, "kind", root->kind);
    gp_json_key_text(json, "name", root->name);
    gp_json_close(json, '}');
}

static const char *id_of(const gp_tree_trace_t *trace, char text[GP_ID128_SIZE])
{
    return trace->text != NULL ? trace->text : gp_id128_of_trace(trace->id, text);
}

int gp_tree_write_json(const gp_tree_view_t *view, FILE *out)
{
    gp_json_t json = {.out = out};
    char text[GP_ID128_SIZE];
    const char *id = id_of(view->trace, text);
    gp_json_open(&json, '{');
    gp_json_key_uint(&json, "v", 1);
    put_head(&json, view->set, view->trace, id);
    put_clocks(&json, view->set);
    gp_json_key(&json, "spans");
    gp_json_open(&json, '[');
    for (uint32_t i = 0; i < view->trace->count; i++)
        put_span(&json, view, gp_tree_at(view, i), id);
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    putc('\n', out);
    return 0;
}

int gp_tree_list_json(const gp_tree_list_t *list, FILE *out)
{
    gp_json_t json = {.out = out};
    char text[GP_ID128_SIZE];
    gp_json_open(&json, '[');
    for (size_t i = 0; i < list->count; i++) {
        const gp_tree_trace_t *trace = &list->set->traces[list->traces[i]];
        gp_json_line(&json);
        gp_json_open(&json, '{');
        put_head(&json, list->set, trace, id_of(trace, text));
        gp_json_close(&json, '}');
    }
    gp_json_close(&json, ']');
    putc('\n', out);
    return 0;
}
