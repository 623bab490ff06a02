// SPDX-License-Identifier: MIT
// A trace, or the list of all, as text, JSON, Graphviz, Chrome's trace events, a page of HTML, and Rally's charts.
//
// The set must be linked. Each returns 0 or a negative errno value; what goes wrong with the stream stays in its error
// flag. Threads: one at a time. Signals: not safe.
#pragma once

#include <stdio.h>

#include "traces/spans.h"

typedef struct gp_tree_view {
    const gp_spans_t *set;
    const gp_tree_trace_t *trace;
    const char *const *sources; // [source_count], as they were named on the command line
    size_t source_count;
    const char *const *verdicts; // [verdict_count], sentences on the trace; of a page
    size_t verdict_count;
} gp_tree_view_t;

int gp_tree_write_text(const gp_tree_view_t *view, FILE *out);
int gp_tree_write_json(const gp_tree_view_t *view, FILE *out);
int gp_tree_write_dot(const gp_tree_view_t *view, FILE *out);
int gp_tree_write_chrome(const gp_tree_view_t *view, FILE *out);
int gp_tree_write_html(const gp_tree_view_t *view, FILE *out);
int gp_tree_write_rally(const gp_tree_view_t *view, FILE *out);

typedef struct gp_tree_list {
    const gp_spans_t *set;
    const uint32_t *traces; // [count], numbers in the set, in the order wanted
    size_t count;
    const char *const *sources;
    size_t source_count;
} gp_tree_list_t;

int gp_tree_list_text(const gp_tree_list_t *list, FILE *out);
int gp_tree_list_json(const gp_tree_list_t *list, FILE *out);
int gp_tree_list_rally(const gp_tree_list_t *list, FILE *out);

// Words that several writers share.
static inline const gp_tree_span_t *gp_tree_at(const gp_tree_view_t *view, uint32_t position)
{
    return &view->set->items[view->set->order[view->trace->first + position]];
}

// A field's value, "" when there is none.
const char *gp_tree_field(const gp_tree_span_t *span, const char *key);

// Remarks on a span beside its times: "open", "parent missing", ... each once, by `put`.
void gp_tree_each_remark(const gp_tree_span_t *span, void (*put)(void *context, const char *remark), void *context);

// "+1.204 ms" and the like, about a process's clock. Returns false where there is nothing to say.
bool gp_tree_clock_words(const gp_tree_process_t *process, char *text, size_t size);

// A moment, "2026-11-22 18:00:00.123 UTC".
enum { GP_TREE_MOMENT_SIZE = 48 };
const char *gp_tree_moment(int64_t ns, char text[GP_TREE_MOMENT_SIZE]);

// The command that shows a trace, as a shell takes it.
void gp_tree_put_command(FILE *out, const char *id, const char *const *sources, size_t source_count);

// A trace's name as OSProfiler knows it: the text that was given, else the UUID.
const char *gp_tree_trace_name(const gp_tree_trace_t *trace, char text[GP_ID128_SIZE]);
