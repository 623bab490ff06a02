// SPDX-License-Identifier: MIT
// greenprof's own JSON: everything that a report has, for programs.
//
//   {"format": "greenprof", "version": 1,       raised when an old reader would misread
//    "title": TEXT, "start_realtime_ns": N, "duration_ns": N, "frequency_hz": N,
//    "total_ns": N,                             CPU time; the rows' weights add up to it; null: not known (delays)
//    "basis": "exact" | "estimated" | "sampled",   what that rests on, export/model.h
//    "scope_ns": N,                             where estimated: the exact time it is a part of
//    "measure": "wall",                         or "delay"; absent: CPU time
//    "sampled_ns": N, "samples": N,             what the on-CPU samples say,
//    "cpu_ns": N,                               of that exact CPU time; absent where it is not known
//    "counters": {NAME: N, ...},                losses by reason, capture/format.h
//    "not_known": [TEXT, ...],                  of runtimes, and what is not seen of them; absent: nothing
//    "mappings": [{"path", "build_id", "start": "0x...", "end": "0x..."}, ...],
//    "frames": [{"function", "file", "line", "first_line", "module", "mapping": index,
//                "address": "0x...", "inlined": true, "pseudo": true}, ...],
//    "labels": [{"coroutine", "coroutine_id", "thread", "thread_id", "trace_id"}, ...],
//    "rows": [{"weight_ns": N, "samples": N, "label": index,
//              "stack": [index of a frame, ...]}, ...],         root first, heaviest row first
//                                             (in each part of its own where there are too many)
//    "calls": [{"caller": frame, "callee": frame,      exact mode; without a caller: none was seen
//               "calls": N, "primitive_calls": N,      export/model.h says what each counts
//               "primitive_edge_calls": N, "self_cpu_ns": N, "self_wait_ns": N, "cpu_ns": N,
//               "wait_ns": N, "edge_cpu_ns": N, "edge_wait_ns": N}, ...]}
//
// What is not known is left out. An inlined frame has the address of the frame before it. Texts are
// UTF-8; addresses are texts, as not every reader has whole numbers beyond 2^53.
#include "export/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefetch.h"
#include "export/output.h"
#include "export/write/json_text.h"
#include "export/write/text.h"
#include "report/report_words.h"

// Leave out what is empty or 0: it is not known.
static void json_put_known_text(gp_json_t *json, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        gp_json_key_text(json, key, text);
}

static void json_put_known_uint(gp_json_t *json, const char *key, uint64_t value)
{
    if (value != 0)
        gp_json_key_uint(json, key, value);
}

static void json_put_known_address(gp_json_t *json, const char *key, uint64_t value)
{
    if (value == 0)
        return;
    gp_json_key(json, key);
    gp_json_address(json, value);
}

static void json_put_flag(gp_json_t *json, const char *key, bool value)
{
    if (!value)
        return;
    gp_json_key(json, key);
    gp_json_bool(json, true);
}

// "key": index, for a number that is an index plus 1.
static void json_put_index(gp_json_t *json, const char *key, uint32_t number)
{
    if (number != 0)
        gp_json_key_uint(json, key, number - 1);
}

// An array with an object a line; array_end() closes it.
static void json_array_begin(gp_json_t *json, const char *key)
{
    gp_json_line(json);
    gp_json_key(json, key);
    gp_json_open(json, '[');
}

static void json_item_begin(gp_json_t *json)
{
    gp_json_line(json);
    gp_json_open(json, '{');
}

static void json_put_counters(gp_json_t *json, const gp_report_t *report)
{
    gp_json_line(json);
    gp_json_key(json, "counters");
    gp_json_open(json, '{');
    for (uint32_t i = 0; i < report->counter_count; i++)
        if (gp_counter_name(i) != NULL)
            gp_json_key_uint(json, gp_counter_name(i), report->counters[i]);
    gp_json_close(json, '}');
}

static void json_put_not_known(gp_json_t *json, const gp_report_t *report)
{
    if (report->not_known == NULL || report->not_known[0] == NULL)
        return;
    gp_json_line(json);
    gp_json_key(json, "not_known");
    gp_json_open(json, '[');
    for (size_t i = 0; report->not_known[i] != NULL; i++)
        gp_json_text(json, report->not_known[i]);
    gp_json_close(json, ']');
}

static void json_put_mapping(gp_json_t *json, const gp_report_mapping_t *mapping)
{
    json_item_begin(json);
    gp_json_key_text(json, "path", mapping->path);
    json_put_known_text(json, "build_id", mapping->build_id);
    json_put_known_address(json, "start", mapping->start);
    json_put_known_address(json, "end", mapping->end);
    gp_json_close(json, '}');
}

static void json_put_frame(gp_json_t *json, const gp_report_frame_t *frame)
{
    json_item_begin(json);
    gp_json_key_text(json, "function", frame->function);
    if (!frame->pseudo)
        json_put_known_text(json, "file", frame->file);
    json_put_known_uint(json, "line", frame->line);
    json_put_known_uint(json, "first_line", frame->first_line);
    json_put_known_text(json, "module", frame->module);
    json_put_index(json, "mapping", frame->mapping);
    json_put_known_address(json, "address", frame->address);
    json_put_flag(json, "inlined", frame->inlined);
    json_put_flag(json, "pseudo", frame->pseudo);
    gp_json_close(json, '}');
}

static void json_put_label(gp_json_t *json, const gp_label_t *label)
{
    json_item_begin(json);
    json_put_known_text(json, "coroutine", label->coroutine);
    json_put_known_uint(json, "coroutine_id", label->coroutine_id);
    json_put_known_text(json, "thread", label->thread);
    json_put_known_uint(json, "thread_id", label->thread_id);
    json_put_known_text(json, "trace_id", label->trace);
    gp_json_close(json, '}');
}

enum { STACKS_BYTES_MAX = 16 << 20, LINE = 64, ROWS_AHEAD = 8 };

typedef struct stack_text {
    size_t at;
    size_t len; // 0 = not made yet
} stack_text_t;

typedef struct rows {
    gp_json_t *json;
    gp_text_t texts;      // of stacks: those that are kept, and behind them the last one
    size_t kept;          // bytes
    gp_text_t row;        // that is being put together
    stack_text_t *stacks; // by gp_report_row_t.path, less 1
} rows_t;

static stack_text_t json_make_stack(gp_text_t *text, const gp_report_row_t *row)
{
    size_t before = text->len;
    char *begin = gp_text_extend(text, 2 + row->depth * (GP_TEXT_UINT_MAX + 1ul)), *at = begin;
    if (begin == NULL)
        return (stack_text_t){0};
    *at++ = '[';
    for (uint32_t i = 0; i < row->depth; i++) {
        if (i > 0)
            *at++ = ',';
        at += gp_text_uint(at, row->frames[i]);
    }
    *at++ = ']';
    text->len = before + (size_t)(at - begin);
    return (stack_text_t){before, (size_t)(at - begin)};
}

// Rows of one stack are apart, the heaviest row comes first: its text is made once.
static stack_text_t json_stack_of(rows_t *rows, const gp_report_row_t *row)
{
    stack_text_t *known = row->path != 0 ? &rows->stacks[row->path - 1] : NULL;
    if (known != NULL && known->len > 0)
        return *known;
    rows->texts.len = rows->kept;
    stack_text_t made = json_make_stack(&rows->texts, row);
    if (known == NULL || rows->kept >= STACKS_BYTES_MAX)
        return made;
    rows->kept = rows->texts.len;
    return *known = made;
}

// Have the text of a row's stack ready: it may be anywhere.
static void json_expect_row(const rows_t *rows, const gp_report_row_t *row)
{
    const stack_text_t *stack = row->path != 0 ? &rows->stacks[row->path - 1] : NULL;
    for (size_t at = 0; stack != NULL && at < stack->len; at += LINE)
        gp_prefetch(rows->texts.data + stack->at + at);
}

static char *json_add_number(char *at, const char *key, uint64_t value)
{
    at = stpcpy(at, key);
    return at + gp_text_uint(at, value);
}

// Rows are most of the file: each is one piece for the stream.
static void json_put_row(rows_t *rows, const gp_report_row_t *row)
{
    char start[128], *end = start;
    const stack_text_t stack = json_stack_of(rows, row);
    end = json_add_number(end, "{\"weight_ns\":", row->weight_ns);
    end = json_add_number(end, ",\"samples\":", row->samples);
    if (row->label != 0)
        end = json_add_number(end, ",\"label\":", row->label - 1);
    end = stpcpy(end, ",\"stack\":");
    gp_text_clear(&rows->row);
    gp_text_add(&rows->row, start, (size_t)(end - start));
    gp_text_add(&rows->row, stack.len > 0 ? rows->texts.data + stack.at : "[]", stack.len > 0 ? stack.len : 2);
    gp_text_add(&rows->row, "}", 1);
    if (rows->row.failed)
        return;
    gp_json_line(rows->json);
    gp_json_raw(rows->json, rows->row.data, rows->row.len);
}

static void json_put_call(gp_json_t *json, const gp_call_t *call)
{
    json_item_begin(json);
    if (call->caller != GP_CALL_NO_CALLER)
        gp_json_key_uint(json, "caller", call->caller);
    gp_json_key_uint(json, "callee", call->callee);
    gp_json_key_uint(json, "calls", call->calls);
    gp_json_key_uint(json, "primitive_calls", call->primitive_calls);
    gp_json_key_uint(json, "primitive_edge_calls", call->primitive_edge_calls);
    gp_json_key_uint(json, "self_cpu_ns", call->self_cpu_ns);
    gp_json_key_uint(json, "self_wait_ns", call->self_wait_ns);
    gp_json_key_uint(json, "cpu_ns", call->cpu_ns);
    gp_json_key_uint(json, "wait_ns", call->wait_ns);
    gp_json_key_uint(json, "edge_cpu_ns", call->edge_cpu_ns);
    gp_json_key_uint(json, "edge_wait_ns", call->edge_wait_ns);
    gp_json_close(json, '}');
}

static void json_put_calls(gp_json_t *json, const gp_report_t *report)
{
    if (!report->exact_calls)
        return;
    json_array_begin(json, "calls");
    for (uint32_t i = 0; i < report->call_count; i++)
        json_put_call(json, &report->calls[i]);
    gp_json_close(json, ']');
}

// null where it is not known.
static void json_put_number(gp_json_t *json, const char *key, uint64_t value, bool is_unknown)
{
    gp_json_key(json, key);
    if (is_unknown)
        gp_json_null(json);
    else
        gp_json_uint(json, value);
}

static void json_put_head(gp_json_t *json, const gp_report_t *report)
{
    gp_json_key_text(json, "format", "greenprof");
    gp_json_key_uint(json, "version", 1);
    gp_json_line(json);
    gp_json_key_text(json, "title", report->title);
    json_put_known_uint(json, "start_realtime_ns", report->start_realtime_ns);
    json_put_known_uint(json, "duration_ns", report->duration_ns);
    json_put_known_uint(json, "frequency_hz", report->frequency_hz);
    json_put_number(json, "total_ns", report->total_ns, report->is_unknown);
    gp_json_key_text(json, "basis", gp_basis_name(report->basis));
    if (report->basis == GP_BASIS_ESTIMATED)
        gp_json_key_uint(json, "scope_ns", report->scope_ns);
    if (report->measure != GP_MEASURE_CPU)
        gp_json_key_text(json, "measure", gp_measure_name(report->measure));
    gp_json_key_uint(json, "sampled_ns", report->sampled_ns);
    json_put_known_uint(json, "cpu_ns", report->cpu_ns);
    json_put_number(json, "samples", report->samples, report->is_unknown);
    json_put_counters(json, report);
    json_put_not_known(json, report);
}

static int json_put_part(void *context, const gp_report_row_t *rows, size_t count)
{
    rows_t *written = context;
    for (size_t i = 0; i < count; i++) {
        if (i + ROWS_AHEAD < count)
            json_expect_row(written, &rows[i + ROWS_AHEAD]);
        json_put_row(written, &rows[i]);
    }
    return written->texts.failed || written->row.failed ? -ENOMEM : gp_output_state(written->json->out);
}

int gp_json_write(const gp_report_t *report, FILE *out)
{
    gp_json_t json = {.out = out};
    gp_json_open(&json, '{');
    json_put_head(&json, report);
    json_array_begin(&json, "mappings");
    for (uint32_t i = 0; i < report->mapping_count; i++)
        json_put_mapping(&json, &report->mappings[i]);
    gp_json_close(&json, ']');
    json_array_begin(&json, "frames");
    for (uint32_t i = 0; i < report->frame_count; i++)
        json_put_frame(&json, &report->frames[i]);
    gp_json_close(&json, ']');
    json_array_begin(&json, "labels");
    for (uint32_t i = 0; i < report->label_count; i++)
        json_put_label(&json, &report->labels[i]);
    gp_json_close(&json, ']');
    json_array_begin(&json, "rows");
    rows_t rows = {.json = &json, .stacks = calloc((size_t)report->path_count + 1, sizeof(*rows.stacks))};
    int result = rows.stacks != NULL ? gp_report_each_part(report, json_put_part, &rows) : -ENOMEM;
    gp_text_free(&rows.texts);
    gp_text_free(&rows.row);
    free(rows.stacks);
    gp_json_close(&json, ']');
    json_put_calls(&json, report);
    gp_json_close(&json, '}');
    putc('\n', out);
    return result;
}
