#include "export/report_builder.h"
#include "export/strata.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct capture_report {
    gp_builder_t *builder;
    const gp_dataset_t *dataset;
    const gp_report_options_t *options;
    uint32_t *modules; // module number in the dataset -> the symbolizer's
    gp_strata_t strata;
    uint64_t sampled_ns; // what the samples add up to before they are scaled
} capture_report_t;

static uint32_t symbolizer_module(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                                  uint32_t number)
{
    if (number == GP_INDEX_NONE)
        return GP_SYMBOLIZER_NO_MODULE;
    const gp_dataset_module_t *module = &dataset->modules[number];
    return gp_symbolizer_module(symbolizer, module->path, strlen(module->path), module->build_id,
                                module->build_id_len);
}

static const char *entry_name(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                              gp_loc_t entry)
{
    if (entry == 0 || GP_LOC_MODULE(entry) == GP_MODULE_PSEUDO)
        return NULL;
    uint32_t number = gp_dataset_module_find(dataset, GP_LOC_MODULE(entry));
    const gp_symbol_t *symbol = gp_symbolizer_resolve(
        symbolizer, symbolizer_module(dataset, symbolizer, number), GP_LOC_OFFSET(entry));
    return symbol ? symbol->function : NULL;
}

// What snprintf() returned, as the length of what is there.
static size_t cut(int len, size_t size)
{
    return len < 0 ? 0 : (size_t)len < size ? (size_t)len : size - 1;
}

static size_t thread_label(const gp_dataset_t *dataset, const gp_coro_record_t *record, char *text,
                           size_t size)
{
    uint32_t number = gp_dataset_thread_find(dataset, record->thread);
    const char *name = number != GP_INDEX_NONE ? dataset->threads[number].name : record->name;
    uint32_t tid = number != GP_INDEX_NONE ? dataset->threads[number].tid : record->thread;

    if (name[0] == '\0')
        return cut(snprintf(text, size, "[thread %" PRIu32 "]", tid), size);
    return cut(snprintf(text, size, "[thread %s]", name), size);
}

size_t gp_report_coro_label(const gp_dataset_t *dataset, uint32_t coro, gp_symbolizer_t *symbolizer,
                            bool bare, char *text, size_t size)
{
    const gp_coro_record_t *record = &dataset->coros[coro].record;
    const char *name = record->name;
    char address[32];

    if (record->kind == GP_CORO_THREAD)
        return thread_label(dataset, record, text, size);
    if (name[0] == '\0')
        name = entry_name(dataset, symbolizer, record->entry);
    if (name == NULL && dataset->coros[coro].defined) {
        snprintf(address, sizeof(address), "stack@0x%" PRIx64, record->stack_lo);
        name = address;
    }
    if (name == NULL)
        name = "unknown"; // its definition was lost
    if (bare)
        return cut(snprintf(text, size, "%s", name), size);
    return cut(snprintf(text, size, "[coroutine %" PRIu64 " %s]", record->id, name), size);
}

size_t gp_report_trace_label(const gp_dataset_t *dataset, uint32_t trace, bool bare, char *text,
                             size_t size)
{
    const gp_dataset_trace_t *item = &dataset->traces[trace];
    char id[40];

    if (item->index == 0)
        return cut(snprintf(text, size, bare ? "no trace" : "[no trace]"), size);
    snprintf(id, sizeof(id), "#%" PRIu32, item->index); // where its definition was lost
    for (size_t i = 0; i < 16 && item->defined; i++)
        snprintf(id + 2 * i, 3, "%02x", item->id[i]);
    return cut(snprintf(text, size, bare ? "%s" : "[trace %s]", id), size);
}

// Whose samples a row holds, as a label. The texts are in `text`.
typedef struct label_text {
    char coro[256], trace[40];
} label_text_t;

static gp_label_t label_of(const capture_report_t *from, const gp_dataset_weight_t *weight,
                           label_text_t *text)
{
    const gp_dataset_t *dataset = from->dataset;
    uint32_t thread = gp_dataset_thread_find(dataset, weight->thread);
    gp_label_t label = {
        .coroutine = text->coro,
        .coroutine_id = dataset->coros[weight->coro].record.id,
    };

    gp_report_coro_label(dataset, weight->coro, from->builder->symbolizer, true, text->coro,
                         sizeof(text->coro));
    if (thread != GP_INDEX_NONE) {
        label.thread_id = dataset->threads[thread].tid;
        if (dataset->threads[thread].name[0] != '\0')
            label.thread = dataset->threads[thread].name;
    }
    if (dataset->traces[weight->trace].index != 0) {
        gp_report_trace_label(dataset, weight->trace, true, text->trace, sizeof(text->trace));
        label.trace = text->trace;
    }
    return label;
}

static int add_label(const capture_report_t *from, const gp_dataset_weight_t *weight)
{
    label_text_t text;

    if (!(from->options->wants & GP_WANT_LABELS))
        return 0;
    gp_label_t label = label_of(from, weight, &text);
    return gp_builder_row_label(from->builder, &label);
}

static bool is_chosen(const gp_report_options_t *options, uint32_t coro, uint32_t trace)
{
    return (!options->only_coro || options->coro == coro) &&
           (!options->only_trace || options->trace == trace);
}

static int add_root(capture_report_t *from, const gp_dataset_weight_t *weight)
{
    char text[256];

    if (from->options->by == GP_BY_NONE)
        return 0;
    if (from->options->by == GP_BY_TRACE)
        gp_report_trace_label(from->dataset, weight->trace, false, text, sizeof(text));
    else
        gp_report_coro_label(from->dataset, weight->coro, from->builder->symbolizer, false, text,
                             sizeof(text));
    return gp_builder_row_pseudo(from->builder, text);
}

static int add_function(const capture_report_t *from, gp_loc_t loc)
{
    const gp_dataset_t *dataset = from->dataset;
    uint64_t offset = GP_LOC_OFFSET(loc);
    uint32_t number = gp_dataset_function_find(dataset, GP_LANGUAGE_FUNCTION(offset));

    if (number == GP_INDEX_NONE)
        return gp_builder_row_function(from->builder, NULL, NULL, 0, 0);
    const gp_dataset_function_t *function = &dataset->functions[number];
    return gp_builder_row_function(from->builder, function->name, function->file,
                                   function->first_line, GP_LANGUAGE_LINE(offset));
}

static int add_stack(capture_report_t *from, const gp_dataset_stack_t *stack)
{
    int result = 0;

    if (!stack->defined)
        return gp_builder_row_pseudo(from->builder, stack->id ? "[lost stack]" : "[no stack]");
    for (uint16_t i = stack->depth; i > 0 && result == 0; i--) {
        gp_loc_t loc = stack->frames[i - 1];
        if (GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE) {
            result = add_function(from, loc);
            continue;
        }
        uint32_t number = gp_dataset_module_find(from->dataset, GP_LOC_MODULE(loc));
        result = gp_builder_row_loc(
            from->builder,
            number != GP_INDEX_NONE ? from->modules[number] : GP_SYMBOLIZER_NO_MODULE, loc);
    }
    return result;
}

// Exact CPU time of what was chosen; 0 = not known.
static uint64_t exact_total(const capture_report_t *from)
{
    uint64_t total = 0;

    if (!from->options->only_coro && !from->options->only_trace) {
        // Threads that no signal reached ran code that no sample shows: their time is said apart,
        // not spread over others.
        uint64_t all = from->dataset->totals.process_cpu_ns;
        uint64_t unsampled = from->dataset->counters[GP_COUNTER_UNSAMPLED_NS];
        return all > unsampled ? all - unsampled : 0;
    }
    for (size_t i = 0; i < from->dataset->share_count; i++) {
        const gp_dataset_share_t *share = &from->dataset->shares[i];
        if (is_chosen(from->options, share->coro, share->trace))
            total += share->cpu_ns;
    }
    return total;
}

static int weigh(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;

    if (gp_strata_init(&from->strata, dataset->coro_count) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->weight_count; i++)
        if (is_chosen(from->options, dataset->weights[i].coro, dataset->weights[i].trace))
            gp_strata_add_samples(&from->strata, &dataset->weights[i]);
    for (size_t i = 0; i < dataset->share_count; i++)
        if (is_chosen(from->options, dataset->shares[i].coro, dataset->shares[i].trace))
            gp_strata_add_exact(&from->strata, &dataset->shares[i]);
    gp_strata_divide(&from->strata, dataset->coro_count, exact_total(from));
    return 0;
}

static int add_weights(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    int result = 0;

    for (size_t i = 0; i < dataset->weight_count && result == 0; i++) {
        const gp_dataset_weight_t *weight = &dataset->weights[i];
        if (!is_chosen(from->options, weight->coro, weight->trace))
            continue;
        gp_builder_row_begin(from->builder);
        result = add_label(from, weight);
        if (result == 0)
            result = add_root(from, weight);
        if (result == 0)
            result = add_stack(from, &dataset->stacks[weight->stack]);
        if (result == 0)
            result = gp_builder_row_end(
                from->builder, gp_strata_scale(&from->strata, weight->coro, weight->weight_ns),
                weight->samples);
        from->sampled_ns += weight->weight_ns;
    }
    return result;
}

static int describe(const capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    gp_report_t *report = &from->builder->report;
    const char *slash = strrchr(dataset->exe, '/');
    const char *name = slash ? slash + 1 : dataset->exe;

    if (name[0] == '\0')
        name = "profile";
    report->duration_ns = dataset->end_ns;
    report->start_realtime_ns = dataset->header.start_realtime_ns;
    report->frequency_hz = dataset->header.frequency_hz;
    report->title = gp_arena_text(&from->builder->arena, name, strlen(name));
    report->counters =
        gp_arena_copy(&from->builder->arena, dataset->counters, sizeof(dataset->counters));
    report->counter_count = GP_COUNTER_COUNT;
    return report->title != NULL && report->counters != NULL ? 0 : -ENOMEM;
}

static int map_modules(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    int result = 0;

    for (size_t i = 0; i < dataset->module_count && result == 0; i++) {
        const gp_dataset_module_t *module = &dataset->modules[i];
        gp_mapping_t mapping = {.path = module->path, .start = module->start, .end = module->end};
        from->modules[i] = symbolizer_module(dataset, from->builder->symbolizer, (uint32_t)i);
        result = gp_builder_mapping(from->builder, from->modules[i], module->bias, &mapping,
                                    module->build_id, module->build_id_len);
    }
    return result;
}

gp_report_t *gp_report_from_capture(const gp_dataset_t *dataset, const gp_report_options_t *options,
                                    gp_symbolizer_t *symbolizer)
{
    capture_report_t from = {
        .builder = gp_builder_create(symbolizer, options->wants),
        .dataset = dataset,
        .options = options,
        .modules = calloc(dataset->module_count + 1, sizeof(uint32_t)),
    };
    gp_report_t *report = NULL;

    if (from.builder == NULL || from.modules == NULL)
        goto out;
    if (map_modules(&from) < 0 || weigh(&from) < 0 || add_weights(&from) < 0 || describe(&from) < 0)
        goto out;
    report = gp_builder_finish(from.builder, exact_total(&from));
    from.builder = NULL;
    if (report != NULL)
        report->sampled_ns = from.sampled_ns;
out:
    if (report == NULL) {
        gp_builder_free(from.builder);
        errno = ENOMEM;
    }
    gp_strata_free(&from.strata);
    free(from.modules);
    return report;
}
