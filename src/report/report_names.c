// SPDX-License-Identifier: MIT
#include "report/report_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *gp_report_loc_name(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, gp_loc_t loc)
{
    gp_namer_t namer = {.facts = &dataset->facts, .symbolizer = symbolizer};
    gp_name_t name;
    return gp_facts_name(&namer, loc, &name) == 0 ? gp_symbol_outermost(name.symbol)->function : "[unknown]";
}

// The length of a text, by the result of its snprintf().
static size_t report_names_cut(int len, size_t size)
{
    return len < 0 ? 0 : (size_t)len < size ? (size_t)len : size - 1;
}

static size_t report_names_thread_label(const gp_dataset_t *dataset, const gp_coro_record_t *record, char *text,
                                        size_t size)
{
    uint32_t number = gp_dataset_thread_find(dataset, record->thread);
    const char *name = number != GP_INDEX_NONE ? dataset->facts.threads.items[number].name : record->name;
    uint32_t tid = number != GP_INDEX_NONE ? dataset->facts.threads.items[number].tid : record->thread;
    if (name[0] == '\0')
        return report_names_cut(snprintf(text, size, "[thread %" PRIu32 "]", tid), size);
    return report_names_cut(snprintf(text, size, "[thread %s]", name), size);
}

size_t gp_report_coro_label(const gp_dataset_t *dataset, uint32_t coro, gp_symbolizer_t *symbolizer, bool bare,
                            char *text, size_t size)
{
    const gp_coro_record_t *record = &dataset->facts.coros.items[coro].record;
    const char *name = record->name;
    char made[256];
    if (record->kind == GP_CORO_THREAD)
        return report_names_thread_label(dataset, record, text, size);
    if (name[0] == '\0')
        name = gp_report_coro_entry(dataset, coro, symbolizer, made, sizeof(made)) ? made : NULL;
    if (name == NULL && dataset->facts.coros.items[coro].defined && record->stack_bytes == 0) {
        name = "unnamed"; // shares its stack with others
    } else if (name == NULL && dataset->facts.coros.items[coro].defined) {
        snprintf(made, sizeof(made), "stack@0x%" PRIx64 "-0x%" PRIx64, record->stack_lo,
                 record->stack_lo + record->stack_bytes);
        name = made;
    }
    if (name == NULL)
        name = "unknown"; // its definition was lost
    if (bare)
        return report_names_cut(snprintf(text, size, "%s", name), size);
    if (record->kind == GP_CORO_GROUP)
        return report_names_cut(snprintf(text, size, "[%s]", name), size);
    return report_names_cut(snprintf(text, size, "[coroutine %" PRIu64 " %s]", record->id, name), size);
}

size_t gp_report_trace_label(const gp_dataset_t *dataset, uint32_t trace, bool bare, char *text, size_t size)
{
    const gp_facts_trace_t *item = &dataset->facts.traces.items[trace];
    char id[40];
    if (item->index == 0)
        return report_names_cut(snprintf(text, size, bare ? "no trace" : "[no trace]"), size);
    snprintf(id, sizeof(id), "#%" PRIu32, item->index); // where its definition was lost
    for (size_t i = 0; i < 16 && item->defined; i++)
        snprintf(id + 2 * i, 3, "%02x", item->id[i]);
    return report_names_cut(snprintf(text, size, bare ? "%s" : "[trace %s]", id), size);
}

typedef struct label_text {
    char coro[256], trace[40];
} label_text_t;

static gp_label_t report_names_coro_label(const gp_dataset_t *dataset, const gp_builder_t *builder, uint32_t coro,
                                          label_text_t *text)
{
    gp_report_coro_label(dataset, coro, builder->names.symbolizer, true, text->coro, sizeof(text->coro));
    return (gp_label_t){
        .coroutine = text->coro,
        .coroutine_id = dataset->facts.coros.items[coro].record.id,
    };
}

uint32_t gp_report_coro_only_label(const gp_dataset_t *dataset, gp_builder_t *builder, uint32_t coro)
{
    label_text_t text;
    gp_label_t label = report_names_coro_label(dataset, builder, coro, &text);
    return gp_builder_label(builder, &label);
}

static void report_names_add_trace(const gp_dataset_t *dataset, uint32_t trace, label_text_t *text, gp_label_t *label)
{
    if (dataset->facts.traces.items[trace].index == 0)
        return;
    gp_report_trace_label(dataset, trace, true, text->trace, sizeof(text->trace));
    label->trace = text->trace;
}

uint32_t gp_report_label(const gp_dataset_t *dataset, gp_builder_t *builder, uint32_t coro, uint32_t trace,
                         uint32_t thread)
{
    label_text_t text;
    gp_label_t label = report_names_coro_label(dataset, builder, coro, &text);
    uint32_t number = gp_dataset_thread_find(dataset, thread);
    if (number != GP_INDEX_NONE) {
        label.thread_id = dataset->facts.threads.items[number].tid;
        if (dataset->facts.threads.items[number].name[0] != '\0')
            label.thread = dataset->facts.threads.items[number].name;
    }
    report_names_add_trace(dataset, trace, &text, &label);
    return gp_builder_label(builder, &label);
}

uint32_t gp_report_request_label(const gp_dataset_t *dataset, gp_builder_t *builder, uint32_t coro, uint32_t trace,
                                 uint32_t request)
{
    label_text_t text;
    gp_label_t label = report_names_coro_label(dataset, builder, coro, &text);
    report_names_add_trace(dataset, trace, &text, &label);
    label.request = request + 1;
    return gp_builder_label(builder, &label);
}
