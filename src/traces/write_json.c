// SPDX-License-Identifier: MIT
// The JSON of a trace: a document that the reader of JSON takes as well. Times of a span are those of its own clock.
#include <errno.h>

#include "consumer/span_json.h"
#include "export/write/json_text.h"
#include "traces/write.h"

static void write_json_put_work(gp_json_t *json, const gp_tree_work_t *work)
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

static int write_json_put_span(gp_json_t *json, const gp_tree_view_t *view, const gp_tree_span_t *span,
                               const char *trace)
{
    const gp_tree_process_t *process = &view->set->processes[span->process];
    char id[GP_ID128_SIZE], parent[GP_ID128_SIZE];
    gp_reply_bytes_t members = {0};
    prof_span_record_t record = span->record;
    record.service = process->service;
    record.host = process->host;
    gp_span_json_members(&members, &record,
                         &(gp_span_names_t){.trace = trace,
                                            .span = gp_id128_of_span(span->id, id),
                                            .parent = gp_id128_is_none(span->parent_id)
                                                          ? NULL
                                                          : gp_id128_of_span(span->parent_id, parent),
                                            .kind = span->kind,
                                            .pid = process->pid,
                                            .has_times = !(record.flags & GP_SPAN_NO_TIMES)});
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_raw(json, members.data, members.len);
    if (span->work != NULL)
        write_json_put_work(json, span->work);
    gp_json_key_uint(json, "depth", span->depth);
    gp_json_key(json, "from_ns");
    gp_json_int(json, span->from_ns - view->trace->from_ns);
    gp_json_key_uint(json, "duration_ns", gp_tree_span_ns(span));
    gp_json_key_uint(json, "self_ns", span->self_ns);
    gp_json_key_uint(json, "critical_ns", span->critical_ns);
    gp_json_close(json, '}');
    int result = members.is_short ? -ENOMEM : 0;
    gp_bytes_free(&members);
    return result;
}

static void write_json_put_clocks(gp_json_t *json, const gp_spans_t *set)
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

static void write_json_put_head(gp_json_t *json, const gp_spans_t *set, const gp_tree_trace_t *trace, const char *id)
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
    gp_json_key_text(json, "name", root->record.name);
    gp_json_close(json, '}');
}

static const char *write_json_id_of(const gp_tree_trace_t *trace, char text[GP_ID128_SIZE])
{
    return trace->text != NULL ? trace->text : gp_id128_of_trace(trace->id, text);
}

int gp_tree_write_json(const gp_tree_view_t *view, FILE *out)
{
    gp_json_t json = {.out = out};
    char text[GP_ID128_SIZE];
    const char *id = write_json_id_of(view->trace, text);
    gp_json_open(&json, '{');
    gp_json_key_uint(&json, "v", 1);
    write_json_put_head(&json, view->set, view->trace, id);
    write_json_put_clocks(&json, view->set);
    gp_json_key(&json, "spans");
    gp_json_open(&json, '[');
    int result = 0;
    for (uint32_t i = 0; i < view->trace->count && result == 0; i++)
        result = write_json_put_span(&json, view, gp_tree_at(view, i), id);
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    putc('\n', out);
    return result;
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
        write_json_put_head(&json, list->set, trace, write_json_id_of(trace, text));
        gp_json_close(&json, '}');
    }
    gp_json_close(&json, ']');
    putc('\n', out);
    return 0;
}
