// SPDX-License-Identifier: MIT
// The tree of a trace, and the list of traces, for a terminal.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/write/text.h"
#include "traces/write.h"

enum { LEVELS_MAX = 24 }; // of the tree's lines; deeper ones begin with their depth

static void write_text_put_ms(FILE *out, uint64_t ns, int width)
{
    char text[32];
    gp_text_decimal(text, ns, 1000000, 3);
    fprintf(out, "%*s", width, text);
}

static void write_text_put_known_ms(FILE *out, const gp_tree_span_t *span, uint64_t ns)
{
    if (span->record.flags & GP_SPAN_NO_TIMES)
        fprintf(out, "%9s", "-");
    else
        write_text_put_ms(out, ns, 9);
}

static void write_text_put_branches(const gp_tree_view_t *view, const gp_tree_span_t *span, FILE *out)
{
    const gp_tree_span_t *way[LEVELS_MAX] = {NULL};
    uint32_t levels = 0;
    for (const gp_tree_span_t *at = span; at->parent != GP_NO_SPAN && levels < LEVELS_MAX;
         at = &view->set->items[at->parent])
        way[levels++] = at;
    if (span->depth > LEVELS_MAX)
        fprintf(out, "[%" PRIu32 "] ", span->depth);
    while (levels-- > 0) {
        bool last = way[levels]->next_sibling == GP_NO_SPAN;
        if (levels > 0)
            fputs(last ? "    " : "\xe2\x94\x82   ", out);
        else
            fputs(last ? "\xe2\x94\x94\xe2\x94\x80\xe2\x94\x80 " : "\xe2\x94\x9c\xe2\x94\x80\xe2\x94\x80 ", out);
    }
}

static void write_text_put_remark(void *context, const char *remark)
{
    fprintf(context, " (%s)", remark);
}

static void write_text_put_title(const gp_tree_view_t *view, const gp_tree_span_t *span, FILE *out)
{
    const gp_tree_process_t *process = &view->set->processes[span->process];
    gp_text_put_line(out, process->service[0] ? process->service : "?");
    fputs(" ", out);
    gp_text_put_line(out, span->kind);
    fputs(" ", out);
    gp_text_put_line(out, span->record.name);
}

static void write_text_put_span(const gp_tree_view_t *view, const gp_tree_span_t *span, FILE *out)
{
    const char *type = gp_tree_field(span, "error.type"), *message = gp_tree_field(span, "error.message");
    write_text_put_ms(out, (uint64_t)(span->from_ns > view->trace->from_ns ? span->from_ns - view->trace->from_ns : 0),
                      10);
    write_text_put_ms(out, gp_tree_span_ns(span), 10);
    write_text_put_ms(out, span->self_ns, 10);
    write_text_put_known_ms(out, span, span->record.cpu_ns);
    write_text_put_known_ms(out, span, span->record.ready_ns);
    write_text_put_known_ms(out, span, span->record.parked_ns);
    fprintf(out, " %c ", span->record.flags & GP_TREE_CRITICAL ? '*' : ' ');
    write_text_put_branches(view, span, out);
    write_text_put_title(view, span, out);
    gp_tree_each_remark(span, write_text_put_remark, out);
    if (type[0] != '\0' || message[0] != '\0') {
        fputs(" ", out);
        gp_text_put_line(out, type);
        fputs(type[0] != '\0' && message[0] != '\0' ? ": " : "", out);
        gp_text_put_line(out, message);
    }
    putc('\n', out);
}

static void write_text_put_clocks(const gp_tree_view_t *view, FILE *out)
{
    char words[160];
    for (size_t i = 0; i < view->set->process_count; i++) {
        const gp_tree_process_t *process = &view->set->processes[i];
        if (!gp_tree_clock_words(process, words, sizeof(words)))
            continue;
        fputs("  clock of ", out);
        gp_text_put_line(out, process->service);
        fputs(" on ", out);
        gp_text_put_line(out, process->host);
        if (process->pid != 0)
            fprintf(out, ", pid %" PRIu64, process->pid);
        fprintf(out, ": %s\n", words);
    }
}

// Each service's share of the critical paths of all roots: the own time of its spans with a `*`.
static void write_text_put_shares(const gp_tree_view_t *view, FILE *out)
{
    const gp_spans_t *set = view->set;
    uint64_t *sums = calloc(set->process_count + 1, sizeof(*sums)), total = 0;
    uint32_t roots = 0;
    if (sums == NULL)
        return; // a summary only
    for (uint32_t i = 0; i < view->trace->count; i++) {
        const gp_tree_span_t *span = gp_tree_at(view, i);
        roots += span->depth == 0;
        sums[span->process] += span->critical_ns;
        total += span->critical_ns;
    }
    if (roots > 1)
        fprintf(out, "\n  critical paths of %" PRIu32 " roots, own time by service:", roots);
    else
        fputs("\n  critical path, own time by service:", out);
    for (size_t i = 0; i < set->process_count && total > 0; i++) {
        uint64_t sum = 0;
        for (size_t j = 0; j < set->process_count; j++)
            if (strcmp(set->processes[i].service, set->processes[j].service) == 0) {
                sum += sums[j];
                sums[j] = 0;
            }
        if (sum == 0)
            continue;
        fputs("  ", out);
        gp_text_put_line(out, set->processes[i].service[0] ? set->processes[i].service : "?");
        fputs(" ", out);
        write_text_put_ms(out, sum, 0);
        fprintf(out, " ms (%.1f %%)", 100.0 * (double)sum / (double)total);
    }
    putc('\n', out);
    free(sums);
}

// A request's own times are those of the coroutine on which it began, which may only have waited for others.
static void write_text_put_works(const gp_tree_view_t *view, FILE *out)
{
    bool any = false;
    for (uint32_t i = 0; i < view->trace->count; i++) {
        const gp_tree_span_t *span = gp_tree_at(view, i);
        const gp_tree_work_t *work = span->work;
        if (work == NULL)
            continue;
        if (!any)
            fputs("\n  sums over all coroutines of a request, ms\n\n"
                  "coroutines       cpu    ready   parked  blocked  preempt  waiting\n",
                  out);
        any = true;
        fprintf(out, "%10" PRIu64, work->coroutines);
        write_text_put_ms(out, work->cpu, 10);
        write_text_put_ms(out, work->ready, 9);
        write_text_put_ms(out, work->parked, 9);
        write_text_put_ms(out, work->blocked, 9);
        write_text_put_ms(out, work->preempted, 9);
        write_text_put_ms(out, work->waiting, 9);
        fputs(" ", out);
        write_text_put_title(view, span, out);
        putc('\n', out);
    }
}

int gp_tree_write_text(const gp_tree_view_t *view, FILE *out)
{
    const gp_tree_trace_t *trace = view->trace;
    char id[GP_ID128_SIZE], moment[GP_TREE_MOMENT_SIZE];
    fputs("trace ", out);
    gp_text_put_line(out, trace->text ? trace->text : gp_id128_of_trace(trace->id, id));
    fprintf(out, "\n  %s, ", gp_tree_moment(trace->from_ns, moment));
    write_text_put_ms(out, (uint64_t)(trace->to_ns - trace->from_ns), 0);
    fprintf(out, " ms, %" PRIu32 " span%s of %" PRIu32 " service%s\n", trace->count, trace->count == 1 ? "" : "s",
            trace->services, trace->services == 1 ? "" : "s");
    write_text_put_clocks(view, out);
    fputs("  times in ms; * = on the critical path; self = while no child was open\n\n"
          "     start  duration      self      cpu    ready   parked\n",
          out);
    for (uint32_t i = 0; i < trace->count; i++)
        write_text_put_span(view, gp_tree_at(view, i), out);
    write_text_put_works(view, out);
    write_text_put_shares(view, out);
    return 0;
}

int gp_tree_list_text(const gp_tree_list_t *list, FILE *out)
{
    char id[GP_ID128_SIZE], moment[GP_TREE_MOMENT_SIZE];
    fprintf(out, "%-32s  %-27s %12s %8s %8s %6s  %s\n", "trace", "start", "duration ms", "services", "spans", "failed",
            "root");
    for (size_t i = 0; i < list->count; i++) {
        const gp_tree_trace_t *trace = &list->set->traces[list->traces[i]];
        const gp_tree_span_t *root = &list->set->items[trace->root];
        gp_text_put_line(out, trace->text ? trace->text : gp_id128_of_trace(trace->id, id));
        fprintf(out, "  %-27s ", gp_tree_moment(trace->from_ns, moment));
        write_text_put_ms(out, (uint64_t)(trace->to_ns - trace->from_ns), 12);
        fprintf(out, " %8" PRIu32 " %8" PRIu32 " %6s  ", trace->services, trace->count, trace->failed ? "failed" : "-");
        gp_text_put_line(out, list->set->processes[root->process].service);
        fputs(" ", out);
        gp_text_put_line(out, root->kind);
        fputs(" ", out);
        gp_text_put_line(out, root->record.name);
        putc('\n', out);
    }
    return 0;
}
