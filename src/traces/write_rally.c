// SPDX-License-Identifier: MIT
// Charts for Rally: of one trace, what a scenario hands to add_output(complete=...); of the list, what a hook of the
// action sys_call prints.
//
// Source: rally 3.3.0, task/processing/charts.py (validate_output) and plugins/task/hooks/sys_call.py.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "export/write/json_text.h"
#include "export/write/text.h"
#include "traces/write.h"

enum { ROWS_MAX = 500, INDENT_MAX = 24 };

static void write_rally_put_ms(gp_json_t *json, uint64_t ns)
{
    gp_json_milliseconds(json, ns);
}

static void write_rally_put_texts(gp_json_t *json, const char *key, const char *const *texts, size_t count)
{
    gp_json_key(json, key);
    gp_json_open(json, '[');
    for (size_t i = 0; i < count; i++)
        gp_json_text(json, texts[i]);
    gp_json_close(json, ']');
}

// The command that shows a trace, as a text. Returns NULL when memory is short; free() it.
static char *write_rally_command_of(const gp_tree_trace_t *trace, const char *const *sources, size_t source_count)
{
    char *text = NULL, id[GP_ID128_SIZE];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    gp_tree_put_command(out, trace->text ? trace->text : gp_id128_of_trace(trace->id, id), sources, source_count);
    if (gp_stream_close(out))
        return text;
    free(text);
    return NULL;
}

static void write_rally_put_row(gp_json_t *json, const gp_tree_view_t *view, const gp_tree_span_t *span)
{
    char name[INDENT_MAX * 2 + 200];
    int indent = (int)(span->depth < INDENT_MAX ? span->depth : INDENT_MAX) * 2;
    snprintf(name, sizeof(name), "%*s%s %s", indent, "", span->kind, span->record.name);
    gp_json_line(json);
    gp_json_open(json, '[');
    gp_json_text(json, name); // a cut character is repaired
    gp_json_text(json, view->set->processes[span->process].service);
    write_rally_put_ms(json,
                       span->from_ns > view->trace->from_ns ? (uint64_t)(span->from_ns - view->trace->from_ns) : 0);
    write_rally_put_ms(json, gp_tree_span_ns(span));
    write_rally_put_ms(json, span->self_ns);
    gp_json_text(json, span->record.flags & GP_TREE_CRITICAL ? "*" : "");
    gp_json_text(json, span->record.flags & GP_SPAN_FAILED ? "failed" : "");
    gp_json_close(json, ']');
}

int gp_tree_write_rally(const gp_tree_view_t *view, FILE *out)
{
    static const char *const columns[] = {"span", "service", "start, ms", "duration, ms", "self, ms", "critical", ""};
    char *command = write_rally_command_of(view->trace, view->sources, view->source_count), title[128],
         id[GP_ID128_SIZE];
    gp_json_t json = {.out = out};
    uint32_t shown = view->trace->count < ROWS_MAX ? view->trace->count : ROWS_MAX;
    if (command == NULL)
        return -ENOMEM;
    snprintf(title, sizeof(title), "greenprof trace %s", gp_tree_trace_name(view->trace, id));
    gp_json_open(&json, '{');
    gp_json_key_text(&json, "title", title);
    gp_json_key_text(&json, "description", command);
    gp_json_key_text(&json, "chart_plugin", "Table");
    gp_json_key(&json, "data");
    gp_json_open(&json, '{');
    write_rally_put_texts(&json, "cols", columns, sizeof(columns) / sizeof(columns[0]));
    gp_json_key(&json, "rows");
    gp_json_open(&json, '[');
    for (uint32_t i = 0; i < shown; i++)
        write_rally_put_row(&json, view, gp_tree_at(view, i));
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    gp_json_close(&json, '}');
    putc('\n', out);
    free(command);
    return 0;
}

static void write_rally_name_root(const gp_tree_list_t *list, uint32_t number, char *text, size_t size)
{
    const gp_tree_span_t *root = &list->set->items[list->set->traces[number].root];
    snprintf(text, size, "%s: %s %s", list->set->processes[root->process].service, root->kind, root->record.name);
}

// Seconds, which is what the columns of Rally's table say.
static void write_rally_put_latencies(gp_json_t *json, const gp_tree_list_t *list)
{
    char name[200];
    gp_json_open(json, '{');
    gp_json_key_text(json, "title", "greenprof: latency of traces");
    gp_json_key_text(json, "chart_plugin", "StatsTable");
    gp_json_key(json, "data");
    gp_json_open(json, '[');
    for (size_t i = 0; i < list->count; i++) {
        const gp_tree_trace_t *trace = &list->set->traces[list->traces[i]];
        write_rally_name_root(list, list->traces[i], name, sizeof(name));
        gp_json_line(json);
        gp_json_open(json, '[');
        gp_json_text(json, name);
        gp_json_seconds(json, (uint64_t)(trace->to_ns - trace->from_ns));
        gp_json_close(json, ']');
    }
    gp_json_close(json, ']');
    gp_json_close(json, '}');
}

static int write_rally_put_trace(gp_json_t *json, const gp_tree_list_t *list, uint32_t number)
{
    const gp_tree_trace_t *trace = &list->set->traces[number];
    char *command = write_rally_command_of(trace, list->sources, list->source_count), text[200];
    if (command == NULL)
        return -ENOMEM;
    gp_json_line(json);
    gp_json_open(json, '[');
    gp_json_text(json, gp_tree_trace_name(trace, text));
    gp_json_text(json, gp_tree_moment(trace->from_ns, text));
    write_rally_put_ms(json, (uint64_t)(trace->to_ns - trace->from_ns));
    gp_json_uint(json, trace->services);
    gp_json_uint(json, trace->count);
    write_rally_name_root(list, number, text, sizeof(text));
    gp_json_text(json, text);
    gp_json_text(json, trace->failed ? "failed" : "");
    gp_json_text(json, command);
    gp_json_close(json, ']');
    free(command);
    return 0;
}

int gp_tree_list_rally(const gp_tree_list_t *list, FILE *out)
{
    static const char *const columns[] = {"trace",   "start", "duration, ms", "services", "spans",
                                          "request", "",      "shown by"};
    gp_json_t json = {.out = out};
    int result = 0;
    gp_json_open(&json, '{');
    gp_json_key(&json, "additive");
    gp_json_open(&json, '[');
    write_rally_put_latencies(&json, list);
    gp_json_close(&json, ']');
    gp_json_key(&json, "complete");
    gp_json_open(&json, '[');
    gp_json_open(&json, '{');
    gp_json_key_text(&json, "title", "greenprof: traces");
    gp_json_key_text(&json, "chart_plugin", "Table");
    gp_json_key(&json, "data");
    gp_json_open(&json, '{');
    write_rally_put_texts(&json, "cols", columns, sizeof(columns) / sizeof(columns[0]));
    gp_json_key(&json, "rows");
    gp_json_open(&json, '[');
    for (size_t i = 0; i < list->count && result == 0; i++)
        result = write_rally_put_trace(&json, list, list->traces[i]);
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    gp_json_close(&json, '}');
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    putc('\n', out);
    return result;
}
