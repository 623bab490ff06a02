// SPDX-License-Identifier: MIT
// greenprof trace: the traces of one or more services.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "message.h"
#include "report/output_guard.h"
#include "trace_headers.h"
#include "trace_sources.h"
#include "traces/write.h"

enum { DIGITS = 32 };

// The forms of output, of which one at most is asked for.
typedef struct way {
    const char *name;
    size_t offset; // of its flag
    int (*show)(const gp_tree_view_t *view, FILE *out);
    int (*list)(const gp_tree_list_t *list, FILE *out); // NULL = there is none
} way_t;

static const way_t ways[] = {
    {NULL, 0, gp_tree_write_text, gp_tree_list_text},
    {"--json", offsetof(gp_arguments_t, json), gp_tree_write_json, gp_tree_list_json},
    {"--html", offsetof(gp_arguments_t, html), gp_tree_write_html, NULL},
    {"--dot", offsetof(gp_arguments_t, dot), gp_tree_write_dot, NULL},
    {"--chrome", offsetof(gp_arguments_t, chrome), gp_tree_write_chrome, NULL},
    {"--rally", offsetof(gp_arguments_t, rally), gp_tree_write_rally, gp_tree_list_rally},
};

typedef struct request {
    const way_t *way;
    gp_tree_view_t view;
    gp_tree_list_t list;
} request_t;

static int trace_write_it(gp_output_t *output, void *context)
{
    const request_t *request = context;
    int result = request->view.trace != NULL ? request->way->show(&request->view, output->file)
                                             : request->way->list(&request->list, output->file);
    return result < 0 ? result : gp_output_state(output->file);
}

static int trace_write_output(const gp_arguments_t *arguments, request_t *request)
{
    const char *output = arguments->output ? arguments->output : "-";
    int result = gp_output_guarded(output, trace_write_it, request);
    if (result == 0)
        return 0;
    return gp_fail(strcmp(output, "-") == 0 ? "standard output" : output, "%s", strerror(-result));
}

// Returns NULL, with a message, where two are asked for.
static const way_t *trace_way_of(const gp_arguments_t *arguments, bool is_list)
{
    const way_t *found = &ways[0];
    for (size_t i = 1; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (!*(const bool *)((const char *)arguments + ways[i].offset))
            continue;
        if (found != &ways[0] || (is_list && ways[i].list == NULL)) {
            if (found != &ways[0])
                gp_usage_error("trace", "%s and %s: which of them?", found->name, ways[i].name);
            else
                gp_usage_error("trace", "%s is for one trace: 'greenprof trace show'", ways[i].name);
            return NULL;
        }
        found = &ways[i];
    }
    return found;
}

// The hex digits of an id or of its beginning, in lower case. Returns whether it is one.
static bool trace_digits_of(const char *id, char digits[DIGITS + 1])
{
    prof_trace_id_t trace;
    size_t len = 0;
    if (prof_trace_parse(id, &trace) == 0) {
        prof_trace_to_hex(&trace, digits);
        return true;
    }
    for (; *id != '\0'; id++) {
        if (*id == '-')
            continue;
        if (strchr("0123456789abcdefABCDEF", *id) == NULL || len == DIGITS)
            return false;
        digits[len++] = *id >= 'A' && *id <= 'F' ? (char)(*id + 'a' - 'A') : *id;
    }
    digits[len] = '\0';
    return len > 0;
}

// OpenStack's clients print the last 64 bits of a trace's id, too.
static bool trace_is_short(const char *digits)
{
    return strlen(digits) == DIGITS / 2;
}

static bool trace_is_it(const gp_tree_trace_t *trace, const char *id, const char *digits)
{
    char text[GP_ID128_SIZE];
    if (trace->count == 0)
        return false;
    if (trace->text != NULL)
        return strcmp(trace->text, id) == 0;
    if (digits == NULL)
        return false;
    gp_id128_of_trace(trace->id, text);
    return strncmp(text, digits, strlen(digits)) == 0 ||
           (trace_is_short(digits) && strcmp(text + DIGITS / 2, digits) == 0);
}

static const gp_tree_trace_t *trace_find_trace(const gp_spans_t *set, const char *id, const char *digits)
{
    const gp_tree_trace_t *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < set->trace_count; i++)
        if (trace_is_it(&set->traces[i], id, digits)) {
            found = &set->traces[i];
            count++;
        }
    if (count == 1)
        return found;
    if (count == 0)
        gp_fail(id, "no trace of that id is in the sources; 'greenprof trace list' shows which are");
    else
        gp_fail(id, "is the beginning of %zu traces", count);
    return NULL;
}

static const gp_tree_trace_t *trace_find_slowest(const gp_spans_t *set)
{
    const gp_tree_trace_t *slowest = NULL;
    for (size_t i = 0; i < set->trace_count; i++) {
        const gp_tree_trace_t *trace = &set->traces[i];
        if (trace->count > 0 && (slowest == NULL || trace->to_ns - trace->from_ns > slowest->to_ns - slowest->from_ns))
            slowest = trace;
    }
    return slowest;
}

static int trace_check_spans(const gp_spans_t *set, const char *first_source)
{
    return set->count > 0 ? 0 : gp_fail(first_source, "has no spans");
}

static int trace_write_page(const gp_arguments_t *arguments, gp_trace_sources_t *sources, request_t *request)
{
    const char **verdicts = calloc(sources->capture_count + 1, sizeof(*verdicts));
    if (verdicts == NULL)
        return gp_fail("memory", "%s", strerror(ENOMEM));
    request->view.verdict_count = gp_trace_sources_verdicts(sources, request->view.trace, verdicts);
    request->view.verdicts = verdicts;
    int status = trace_write_output(arguments, request);
    free(verdicts);
    return status;
}

static int trace_show_trace(const gp_arguments_t *arguments, gp_trace_sources_t *sources, request_t *request)
{
    int status = gp_trace_sources_work(sources, request->view.trace);
    // The page has flame graphs; the graph and the document have where spans began.
    if (status == 0 && arguments->html)
        status = gp_trace_sources_profile(sources, request->view.trace);
    else if (status == 0 && (arguments->dot || arguments->json))
        status = gp_trace_sources_stacks(sources, request->view.trace);
    if (status == 0 && arguments->html)
        return trace_write_page(arguments, sources, request);
    return status == 0 ? trace_write_output(arguments, request) : status;
}

static int trace_show(const gp_arguments_t *arguments, const way_t *way)
{
    int first = arguments->slowest ? 1 : 2;
    const char *id = arguments->slowest ? NULL : arguments->operands[1];
    char digits[DIGITS + 1], **names = arguments->operands + first;
    size_t count = (size_t)(arguments->operand_count - first);
    if (arguments->operand_count < first)
        return gp_usage_error("trace", "missing ID, or --slowest");
    if (arguments->operand_count == first)
        return gp_usage_error(
            "trace",
            "missing SOURCE: a file, a directory, redis://HOST, redis+sentinel://HOST/NAME or clickhouse://HOST");
    bool has_digits = id != NULL && trace_digits_of(id, digits);
    gp_trace_sources_t sources = {0};
    request_t request = {.way = way,
                         .view = {.set = &sources.spans, .sources = (const char *const *)names, .source_count = count}};
    int status =
        gp_trace_sources_open(&sources, arguments, names, count, has_digits && !trace_is_short(digits) ? digits : NULL);
    if (status == 0 && id == NULL) // a missing trace with this id says enough
        status = trace_check_spans(&sources.spans, names[0]);
    if (status == 0) {
        request.view.trace = id != NULL ? trace_find_trace(&sources.spans, id, has_digits ? digits : NULL)
                                        : trace_find_slowest(&sources.spans);
        status = request.view.trace != NULL ? trace_show_trace(arguments, &sources, &request) : EXIT_FAILED;
    }
    gp_trace_sources_close(&sources);
    return status;
}

static const gp_spans_t *sorting; // qsort() has no context
static bool by_latency;

static int trace_compare(const void *left, const void *right)
{
    uint32_t first = *(const uint32_t *)left, second = *(const uint32_t *)right;
    const gp_tree_trace_t *a = &sorting->traces[first], *b = &sorting->traces[second];
    int64_t latency_a = a->to_ns - a->from_ns, latency_b = b->to_ns - b->from_ns;
    if (by_latency && latency_a != latency_b)
        return latency_a > latency_b ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return first < second ? -1 : first > second;
}

static int trace_list_traces(const gp_arguments_t *arguments, const gp_spans_t *set, request_t *request)
{
    uint32_t *traces = calloc(set->trace_count + 1, sizeof(*traces));
    size_t count = 0;
    if (traces == NULL)
        return gp_fail("memory", "%s", strerror(ENOMEM));
    for (uint32_t i = 0; i < set->trace_count; i++)
        if (set->traces[i].count > 0)
            traces[count++] = i;
    sorting = set;
    by_latency = arguments->order != NULL && strcmp(arguments->order, "latency") == 0;
    qsort(traces, count, sizeof(*traces), trace_compare);
    request->list.set = set;
    request->list.traces = traces;
    request->list.count = arguments->rows > 0 && arguments->rows < count ? (size_t)arguments->rows : count;
    int status = trace_write_output(arguments, request);
    free(traces);
    return status;
}

static int trace_list(const gp_arguments_t *arguments, const way_t *way)
{
    char **names = arguments->operands + 1;
    size_t count = (size_t)arguments->operand_count - 1;
    gp_trace_sources_t sources = {0};
    if (arguments->slowest)
        return gp_usage_error("trace", "--slowest is for show; for list there is --sort latency");
    if (count == 0)
        return gp_usage_error(
            "trace",
            "missing SOURCE: a file, a directory, redis://HOST, redis+sentinel://HOST/NAME or clickhouse://HOST");
    request_t request = {.way = way, .list = {.sources = (const char *const *)names, .source_count = count}};
    int status = gp_trace_sources_open(&sources, arguments, names, count, NULL);
    if (status == 0)
        status = trace_check_spans(&sources.spans, names[0]);
    if (status == 0)
        status = trace_list_traces(arguments, &sources.spans, &request);
    gp_trace_sources_close(&sources);
    return status;
}

int gp_command_trace(const gp_arguments_t *arguments)
{
    const char *what = arguments->operands[0];
    bool is_list = strcmp(what, "list") == 0;
    if (strcmp(what, "headers") == 0)
        return gp_trace_headers(arguments);
    if (!is_list && strcmp(what, "show") != 0)
        return gp_usage_error("trace", "'%s': must be list, show or headers", what);
    const way_t *way = trace_way_of(arguments, is_list);
    if (way == NULL)
        return EXIT_USAGE;
    return is_list ? trace_list(arguments, way) : trace_show(arguments, way);
}
