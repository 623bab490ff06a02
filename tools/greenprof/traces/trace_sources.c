// SPDX-License-Identifier: MIT
#include "trace_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stream.h"
#include "capture/format.h"
#include "export/formats.h"
#include "export/write/text.h"
#include "message.h"
#include "report/report_options.h"
#include "store/store.h"
#include "trace_store.h"

static bool trace_sources_is_capture(const char *text, size_t len)
{
    return len >= strlen(GP_FILE_MAGIC) && memcmp(text, GP_FILE_MAGIC, strlen(GP_FILE_MAGIC)) == 0;
}

static int trace_sources_read_json(gp_spans_t *set, int fd, const char *source)
{
    char error[GP_SPANS_ERROR_SIZE] = "", *text;
    size_t len;
    int result = gp_spans_read_all(fd, &text, &len), status = 0;
    if (result < 0)
        status = gp_fail(source, "%s", strerror(-result));
    else if (trace_sources_is_capture(text, len))
        status = gp_fail(source, "is a capture in a pipe: give it by its name");
    else if (len == 0)
        status = gp_fail(source, "is empty");
    else if ((result = gp_spans_read_json(set, text, len, error)) < 0)
        status = gp_fail(source, "%s", result == -ENOMEM ? strerror(ENOMEM) : error);
    free(text);
    return status;
}

// Each capture is read apart: it is a process of its own.
static int trace_sources_read_capture(gp_trace_sources_t *sources, const gp_arguments_t *arguments, char *name)
{
    gp_arguments_t changed = *arguments;
    char *operands[] = {name, NULL};
    gp_input_t *captures = realloc(sources->captures, (sources->capture_count + 1) * sizeof(*captures));
    if (captures == NULL)
        return gp_fail(name, "%s", strerror(ENOMEM));
    sources->captures = captures;
    changed.operands = operands;
    changed.operand_count = 1;
    gp_input_t *source = &captures[sources->capture_count];
    int status = gp_input_open(source, &changed, 0);
    if (status != 0)
        return status;
    sources->capture_count++;
    if (gp_spans_read_dataset(&sources->spans, source->dataset) < 0)
        return gp_fail(name, "%s", strerror(ENOMEM));
    return 0;
}

static int trace_sources_read_file(gp_trace_sources_t *sources, const gp_arguments_t *arguments, char *name)
{
    char magic[8];
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gp_fail(name, "%s", strerror(errno));
    ssize_t got = pread(fd, magic, sizeof(magic), 0);
    int status = got > 0 && trace_sources_is_capture(magic, (size_t)got)
                     ? trace_sources_read_capture(sources, arguments, name)
                     : trace_sources_read_json(&sources->spans, fd, name);
    close(fd);
    return status;
}

static int trace_sources_read_source(gp_trace_sources_t *sources, const gp_arguments_t *arguments, char **operand,
                                     gp_wanted_t wanted)
{
    char *name = *operand;
    char error[GP_SPANS_ERROR_SIZE] = "";
    struct stat status;
    int result;
    if (gp_store_is_url(name))
        return gp_trace_store_read(&sources->spans, operand, wanted);
    if (gp_spans_is_redis(name))
        result = gp_spans_read_redis(&sources->spans, name, wanted, error);
    else if (strstr(name, "://") != NULL)
        return gp_fail(
            name, "is no source: a file, a directory, redis://HOST[:PORT][/DB], redis+sentinel://HOST[:PORT]/NAME[/DB] "
                  "or clickhouse://HOST");
    else if (stat(name, &status) == 0 && S_ISDIR(status.st_mode))
        result = gp_spans_read_folder(&sources->spans, name, wanted, error);
    else
        return trace_sources_read_file(sources, arguments, name);
    if (result == 0)
        return 0;
    return gp_fail(name, "%s", result == -ENOMEM ? strerror(ENOMEM) : error);
}

int gp_trace_sources_open(gp_trace_sources_t *sources, const gp_arguments_t *arguments, char **names, size_t count,
                          gp_wanted_t wanted)
{
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        size_t before = sources->spans.unreadable;
        status = trace_sources_read_source(sources, arguments, &names[i], wanted);
        if (status == 0 && sources->spans.unreadable > before)
            gp_warn(names[i], "%zu records are no spans and were left out", sources->spans.unreadable - before);
    }
    for (size_t i = 0; i < sources->capture_count && status == 0 && sources->spans.count > 0; i++)
        if (sources->captures[i].dataset->spans.count == 0)
            gp_warn(sources->captures[i].path, "has no spans");
    if (status == 0 && gp_spans_link(&sources->spans) < 0)
        status = gp_fail("memory", "%s", strerror(ENOMEM));
    return status;
}

// The number of a trace in a capture, 0 when it has none of it.
static uint32_t trace_sources_find_trace(const gp_dataset_t *dataset, gp_id128_t id)
{
    uint8_t bytes[16];
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(id.hi >> (56 - 8 * i));
        bytes[8 + i] = (uint8_t)(id.lo >> (56 - 8 * i));
    }
    uint32_t number = gp_dataset_trace_find(dataset, bytes);
    return number != GP_INDEX_NONE ? number : 0;
}

int gp_trace_sources_work(gp_trace_sources_t *sources, const gp_tree_trace_t *trace)
{
    int status = 0;
    for (size_t i = 0; i < sources->capture_count && status == 0; i++) {
        const gp_input_t *source = &sources->captures[i];
        uint32_t number = trace_sources_find_trace(source->dataset, trace->id);
        int result = number == 0 ? 0
                                 : gp_spans_take_work(&sources->spans, (uint32_t)(trace - sources->spans.traces),
                                                      source->dataset, number);
        status = result == 0 ? 0 : gp_input_fail(source, -result);
    }
    return status;
}

// The stacks of a trace as folded lines, each below the frame of its span. Returns NULL and errno.
static char *trace_sources_fold(const gp_input_t *source, const bool *traces)
{
    gp_report_options_t options = source->options;
    char *text = NULL;
    size_t size;
    options.by = GP_BY_SPAN;
    options.measure = GP_MEASURE_WALL;
    options.selection = (gp_selection_t){.traces = traces};
    gp_report_t *report = gp_input_report(source, &options);
    if (report == NULL)
        return NULL;
    FILE *out = open_memstream(&text, &size);
    int result = out != NULL ? gp_folded_write(report, out) : -ENOMEM;
    if (out != NULL && !gp_stream_close(out))
        result = -ENOMEM;
    gp_report_free(report);
    if (result == 0)
        return text;
    free(text);
    errno = -result;
    return NULL;
}

static int trace_sources_profile_capture(gp_trace_sources_t *sources, const gp_input_t *source,
                                         const gp_tree_trace_t *trace)
{
    uint32_t number = trace_sources_find_trace(source->dataset, trace->id);
    bool *traces = calloc(source->dataset->facts.traces.count + 1, sizeof(*traces));
    int status = traces != NULL ? 0 : gp_fail(source->path, "%s", strerror(ENOMEM));
    if (status == 0 && number != 0) {
        traces[number] = true;
        char *folded = trace_sources_fold(source, traces);
        if (folded == NULL)
            status = gp_input_fail(source, errno);
        else if (gp_spans_take_profile(&sources->spans, (uint32_t)(trace - sources->spans.traces), folded) < 0)
            status = gp_fail(source->path, "%s", strerror(ENOMEM));
        free(folded);
    }
    free(traces);
    return status;
}

int gp_trace_sources_profile(gp_trace_sources_t *sources, const gp_tree_trace_t *trace)
{
    int status = 0;
    for (size_t i = 0; i < sources->capture_count && status == 0; i++) {
        status = trace_sources_profile_capture(sources, &sources->captures[i], trace);
        gp_input_warn_changed(&sources->captures[i]);
    }
    return status;
}

// Functions from the outermost, a line each. Returns the set's, or NULL when memory is short.
static const char *trace_sources_stack_text(gp_spans_t *set, const gp_input_t *source, const gp_facts_stack_t *stack)
{
    gp_text_t text = {0};
    for (size_t i = stack->depth; i > 0; i--) {
        const char *name = gp_report_loc_name(source->dataset, source->symbolizer, stack->frames[i - 1]);
        if (text.len > 0)
            gp_text_add(&text, "\n", 1);
        gp_text_add(&text, name, strlen(name));
    }
    gp_text_add(&text, "", 1);
    const char *kept = text.failed ? NULL : gp_spans_text(set, text.data);
    gp_text_free(&text);
    return kept;
}

static int trace_sources_stacks_of(gp_spans_t *set, const gp_input_t *source, const gp_tree_trace_t *trace)
{
    const gp_dataset_t *dataset = source->dataset;
    uint32_t number = trace_sources_find_trace(dataset, trace->id);
    for (size_t i = 0; i < dataset->spans.count && number != 0; i++) {
        const gp_dataset_span_t *span = &dataset->spans.items[i];
        const gp_facts_stack_t *stack = &dataset->facts.stacks.items[span->stack];
        if (span->trace != number || stack->depth == 0)
            continue;
        uint32_t found = gp_spans_find(set, (uint32_t)(trace - set->traces), (gp_id128_t){0, span->is.id});
        const char *text = found != GP_NO_SPAN ? trace_sources_stack_text(set, source, stack) : "";
        if (text == NULL)
            return gp_fail(source->path, "%s", strerror(ENOMEM));
        if (found != GP_NO_SPAN)
            set->items[found].record.stack = text;
    }
    return 0;
}

int gp_trace_sources_stacks(gp_trace_sources_t *sources, const gp_tree_trace_t *trace)
{
    int status = 0;
    for (size_t i = 0; i < sources->capture_count && status == 0; i++)
        status = trace_sources_stacks_of(&sources->spans, &sources->captures[i], trace);
    return status;
}

void gp_trace_sources_close(gp_trace_sources_t *sources)
{
    for (size_t i = 0; i < sources->capture_count; i++)
        gp_input_close(&sources->captures[i]);
    free(sources->captures);
    gp_spans_free(&sources->spans);
}
