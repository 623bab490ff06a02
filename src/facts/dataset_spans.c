// SPDX-License-Identifier: MIT
// Spans in a dataset.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/span_record.h"
#include "facts/dataset_private.h"

// The fields of a record as keys and values; NULL when memory is short.
static const prof_field_t *dataset_spans_copy_fields(gp_dataset_t *dataset, const gp_span_record_t *span,
                                                     const char *fields)
{
    const char *text = gp_arena_copy(&dataset->arena, fields, (size_t)span->fields_len + 1);
    prof_field_t *copy = gp_arena_alloc(&dataset->arena, ((size_t)span->field_count + 1) * sizeof(*copy));
    if (text == NULL || copy == NULL)
        return NULL;
    for (uint32_t i = 0; i < span->field_count; i++) {
        copy[i].key = text;
        copy[i].value = text + strlen(text) + 1;
        text = copy[i].value + strlen(copy[i].value) + 1;
    }
    return copy;
}

int gp_dataset_on_span(void *context, const gp_span_record_t *span, const char *name, const char *fields)
{
    gp_dataset_t *dataset = context;
    uint32_t number;
    gp_facts_seen_at(&dataset->facts, span->end_ns);
    bool is_request = span->parent_id == 0 || span->flags & GP_SPAN_REMOTE_PARENT;
    if (!(dataset->keep & GP_KEEP_SPANS || (dataset->keep & GP_KEEP_REQUESTS && is_request)) || span->id == 0 ||
        (dataset->windowed && (span->end_ns < dataset->window.from_ns || span->start_ns >= dataset->window.to_ns)))
        return 0;
    gp_dataset_span_t item = {
        .is = gp_span_of_record(span),
        .parent = GP_INDEX_NONE,
        .coro = gp_dataset_coro_need(dataset, span->coro_id),
        .trace = gp_dataset_trace_need(dataset, span->trace),
        .stack = gp_dataset_stack_need(dataset, span->stack_id),
        .field_count = span->field_count,
        .name = gp_arena_text(&dataset->arena, name, span->name_len),
        .fields = dataset_spans_copy_fields(dataset, span, fields),
    };
    if (item.name == NULL || item.fields == NULL || item.coro == GP_INDEX_NONE || item.trace == GP_INDEX_NONE ||
        item.stack == GP_INDEX_NONE || (number = gp_table_append(&dataset->spans.table)) == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->spans.items[number] = item;
    return 0;
}

static int dataset_spans_by_start(const void *left, const void *right)
{
    const gp_dataset_span_t *a = left, *b = right;
    if (a->is.start != b->is.start)
        return a->is.start < b->is.start ? -1 : 1;
    if (a->is.end != b->is.end)
        return a->is.end > b->is.end ? -1 : 1; // the one around it first
    return a->is.id < b->is.id ? -1 : a->is.id > b->is.id;
}

int gp_dataset_finish_spans(gp_dataset_t *dataset)
{
    if (dataset->spans.count == 0)
        return 0;
    qsort(dataset->spans.items, dataset->spans.count, sizeof(*dataset->spans.items), dataset_spans_by_start);
    if (gp_table_index(&dataset->spans.table) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->spans.count; i++) {
        gp_dataset_span_t *span = &dataset->spans.items[i];
        if (span->is.parent_id != 0 && span->is.parent_id != span->is.id && !(span->is.flags & GP_SPAN_REMOTE_PARENT))
            span->parent = gp_dataset_span_find(dataset, span->is.parent_id);
    }
    return 0;
}
