// SPDX-License-Identifier: MIT
// Fuzz target: the readers of JSON and folded stacks of `greenprof trace`, the trees that they make, and every output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "traces/sources.h"
#include "traces/write.h"

// Invariants of every tree, whatever the input was.
static void check_trees(const gp_spans_t *set)
{
    size_t placed = 0;
    for (size_t i = 0; i < set->trace_count; i++)
        placed += set->traces[i].count;
    if (placed != set->count)
        abort();
    for (size_t i = 0; i < set->count; i++) {
        const gp_tree_span_t *span = &set->items[i];
        if (span->to_ns < span->from_ns || span->self_ns > gp_tree_span_ns(span) ||
            span->critical_ns > gp_tree_span_ns(span) ||
            (span->parent != GP_NO_SPAN && set->items[span->parent].depth + 1 != span->depth))
            abort();
    }
}

static void write_all(const gp_spans_t *set)
{
    static int (*const writers[])(const gp_tree_view_t *, FILE *) = {
        gp_tree_write_text,   gp_tree_write_json, gp_tree_write_dot,
        gp_tree_write_chrome, gp_tree_write_html, gp_tree_write_rally,
    };
    static const char *const sources[] = {"a source"};
    for (size_t i = 0; i < set->trace_count; i++) {
        static const char *const verdicts[] = {"a </verdict> & a <sentence>"};
        const gp_tree_view_t view = {.set = set,
                                     .trace = &set->traces[i],
                                     .sources = sources,
                                     .source_count = 1,
                                     .verdicts = verdicts,
                                     .verdict_count = 1};
        const uint32_t number = (uint32_t)i;
        const gp_tree_list_t list = {set, &number, 1, sources, 1};
        char *text = NULL;
        size_t size;
        if (set->traces[i].count == 0)
            continue;
        FILE *out = open_memstream(&text, &size);
        if (out == NULL)
            return;
        for (size_t j = 0; j < sizeof(writers) / sizeof(writers[0]); j++)
            writers[j](&view, out);
        gp_tree_list_text(&list, out);
        gp_tree_list_json(&list, out);
        gp_tree_list_rally(&list, out);
        fclose(out);
        if (size == 0)
            abort();
        free(text);
    }
}

// JSON once written is read again as the same number of spans.
static void read_back(const gp_spans_t *set)
{
    for (size_t i = 0; i < set->trace_count; i++) {
        const gp_tree_view_t view = {.set = set, .trace = &set->traces[i]};
        gp_spans_t again = {0};
        char *text = NULL, error[GP_SPANS_ERROR_SIZE];
        size_t size;
        FILE *out = set->traces[i].count > 0 ? open_memstream(&text, &size) : NULL;
        if (out == NULL)
            continue;
        gp_tree_write_json(&view, out);
        fclose(out);
        if (gp_spans_read_json(&again, text, size, error) != 0)
            abort();
        free(text);
        gp_spans_free(&again);
    }
}

static void finish(gp_spans_t *set)
{
    if (gp_spans_link(set) == 0) {
        check_trees(set);
        write_all(set);
        read_back(set);
    }
    gp_spans_free(set);
}

static void read_events(const char *text, size_t len)
{
    gp_spans_t set = {0};
    gp_events_t *events = gp_events_create(&set);
    for (size_t at = 0; at < len && events != NULL;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line = end != NULL ? (size_t)(end - text) - at : len - at;
        gp_events_read(events, text + at, line);
        at += line + 1;
    }
    if (events != NULL)
        gp_events_finish(events);
    finish(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gp_spans_t set = {0};
    char error[GP_SPANS_ERROR_SIZE], *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    int result = gp_spans_read_json(&set, text, size, error);
    if (result == 0 && set.trace_count > 0)
        gp_spans_take_profile(&set, 0, text);
    finish(&set);
    read_events((const char *)data, size);
    free(text);
    return 0;
}
