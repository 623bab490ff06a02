// SPDX-License-Identifier: MIT
// A trace as one page that needs nothing else: the tree with a waterfall, the details of a span, and its flame graph
// (page.js draws them).
//
// Data, in <script type="application/json">: {"trace", "start", "duration" ns, "verdicts": [text], "processes":
// [{"service", "host", "pid",
//   "clock"}], "spans": [...]}; a span is {"d": depth, "p": number of its process, "k": kind, "n": name, "f": its start
//   within the trace, "t": duration, "s": self, "c": what it is of the critical path, all ns; "m": remarks; "x": is on
//   the critical path; "w": [cpu, ready, parked, blocked, preempted, waiting, switches] where they are known;
//   "r": of a request [cpu, ready, parked, blocked, preempted, waiting] of all its coroutines, and their number; "i":
//   id; "v": [[key, value], ...]; "g": folded stacks}, in the order of the tree. All names come in by textContent.
#include <inttypes.h>

#include "export/write/json_text.h"
#include "export/write/xml.h"
#include "generated/traces/page_css.h"
#include "generated/traces/page_js.h"
#include "traces/write.h"

static void write_html_put_remark(void *context, const char *remark)
{
    gp_json_text(context, remark);
}

static void write_html_put_numbers(gp_json_t *json, const char *key, const uint64_t *values, size_t count)
{
    gp_json_key(json, key);
    gp_json_open(json, '[');
    for (size_t i = 0; i < count; i++)
        gp_json_uint(json, values[i]);
    gp_json_close(json, ']');
}

static void write_html_put_waits(gp_json_t *json, const prof_span_record_t *span)
{
    const uint64_t values[] = {span->cpu_ns,       span->ready_ns,   span->parked_ns, span->blocked_ns,
                               span->preempted_ns, span->waiting_ns, span->switches};
    write_html_put_numbers(json, "w", values, sizeof(values) / sizeof(values[0]));
}

static void write_html_put_work(gp_json_t *json, const gp_tree_work_t *work)
{
    const uint64_t values[] = {work->cpu,       work->ready,   work->parked,    work->blocked,
                               work->preempted, work->waiting, work->coroutines};
    write_html_put_numbers(json, "r", values, sizeof(values) / sizeof(values[0]));
}

static void write_html_put_fields(gp_json_t *json, const gp_tree_span_t *span)
{
    gp_json_key(json, "v");
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < span->record.field_count; i++) {
        gp_json_open(json, '[');
        gp_json_text(json, span->record.fields[i].key);
        gp_json_text(json, span->record.fields[i].value);
        gp_json_close(json, ']');
    }
    gp_json_close(json, ']');
}

static void write_html_put_span(gp_json_t *json, const gp_tree_view_t *view, const gp_tree_span_t *span)
{
    char id[GP_ID128_SIZE];
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_uint(json, "d", span->depth);
    gp_json_key_uint(json, "p", span->process);
    gp_json_key_text(json, "k", span->kind);
    gp_json_key_text(json, "n", span->record.name);
    gp_json_key(json, "f");
    gp_json_int(json, span->from_ns - view->trace->from_ns);
    gp_json_key_uint(json, "t", gp_tree_span_ns(span));
    gp_json_key_uint(json, "s", span->self_ns);
    gp_json_key_uint(json, "c", span->critical_ns);
    gp_json_key(json, "x");
    gp_json_bool(json, span->record.flags & GP_TREE_CRITICAL);
    gp_json_key(json, "m");
    gp_json_open(json, '[');
    gp_tree_each_remark(span, write_html_put_remark, json);
    gp_json_close(json, ']');
    gp_json_key_text(json, "i", gp_id128_of_span(span->id, id));
    if (!(span->record.flags & GP_SPAN_NO_TIMES))
        write_html_put_waits(json, &span->record);
    if (span->work != NULL)
        write_html_put_work(json, span->work);
    write_html_put_fields(json, span);
    if (span->profile != NULL)
        gp_json_key_text(json, "g", span->profile);
    gp_json_close(json, '}');
}

static void write_html_put_process(gp_json_t *json, const gp_tree_process_t *process)
{
    char words[160];
    gp_tree_clock_words(process, words, sizeof(words));
    gp_json_open(json, '{');
    gp_json_key_text(json, "service", process->service);
    gp_json_key_text(json, "host", process->host);
    gp_json_key_uint(json, "pid", process->pid);
    gp_json_key_text(json, "clock", words);
    gp_json_close(json, '}');
}

static void write_html_put_data(const gp_tree_view_t *view, FILE *out)
{
    gp_json_t json = {.out = out};
    char text[GP_TREE_MOMENT_SIZE], id[GP_ID128_SIZE];
    gp_json_open(&json, '{');
    gp_json_key_text(&json, "trace", view->trace->text ? view->trace->text : gp_id128_of_trace(view->trace->id, id));
    gp_json_key_text(&json, "start", gp_tree_moment(view->trace->from_ns, text));
    gp_json_key_uint(&json, "duration", (uint64_t)(view->trace->to_ns - view->trace->from_ns));
    gp_json_key_uint(&json, "services", view->trace->services);
    gp_json_key(&json, "verdicts");
    gp_json_open(&json, '[');
    for (size_t i = 0; i < view->verdict_count; i++)
        gp_json_text(&json, view->verdicts[i]);
    gp_json_close(&json, ']');
    gp_json_key(&json, "processes");
    gp_json_open(&json, '[');
    for (size_t i = 0; i < view->set->process_count; i++)
        write_html_put_process(&json, &view->set->processes[i]);
    gp_json_close(&json, ']');
    gp_json_key(&json, "spans");
    gp_json_open(&json, '[');
    for (uint32_t i = 0; i < view->trace->count; i++)
        write_html_put_span(&json, view, gp_tree_at(view, i));
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
}

int gp_tree_write_html(const gp_tree_view_t *view, FILE *out)
{
    char id[GP_ID128_SIZE];
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>trace ", out);
    gp_xml_text(out, view->trace->text ? view->trace->text : gp_id128_of_trace(view->trace->id, id));
    fprintf(out, "</title>\n<style>\n%s</style>\n<body>\n", page_css);
    fputs("<script type=\"application/json\" id=\"data\">\n", out);
    write_html_put_data(view, out);
    fprintf(out, "\n</script>\n<script>\n%s</script>\n</body>\n</html>\n", page_js);
    return 0;
}
