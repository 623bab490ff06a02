#include "export/report_calls.h"
#include "export/report_stitch.h"
#include "export/report_timeline.h"
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
    gp_strata_t strata[GP_KIND_COUNT];
    uint64_t exact_ns[GP_KIND_COUNT];   // of what was chosen; 0 = not known
    uint64_t strata_ns[GP_KIND_COUNT];  // what the strata add up to
    bool by_thread;       // strata are threads, else coroutines
    uint64_t sampled_ns;  // what the on-CPU samples add up to before they are scaled
    double squares;       // and the squares of their weights
    gp_timed_stack_t *stacks; // by weight, for the timeline; NULL where it is not wanted
    gp_stitches_t stitches;
    uint64_t left_out_ns; // scaled, of stacks that do not pass the filter
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
    return symbol ? gp_symbol_outermost(symbol)->function : NULL;
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
    if (name == NULL && dataset->coros[coro].defined && record->stack_bytes == 0) {
        name = "unnamed"; // it shares its stack with others
    } else if (name == NULL && dataset->coros[coro].defined) {
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

static int add_loc(capture_report_t *from, gp_loc_t loc)
{
    if (GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE)
        return add_function(from, loc);
    uint32_t number = gp_dataset_module_find(from->dataset, GP_LOC_MODULE(loc));
    return gp_builder_row_loc(
        from->builder, number != GP_INDEX_NONE ? from->modules[number] : GP_SYMBOLIZER_NO_MODULE,
        loc);
}

static int add_stack(capture_report_t *from, const gp_dataset_stack_t *stack)
{
    int result = 0;

    if (!stack->defined)
        return gp_builder_row_pseudo(from->builder, stack->id ? "[lost stack]" : "[no stack]");
    for (uint16_t i = stack->depth; i > 0 && result == 0; i--)
        result = add_loc(from, stack->frames[i - 1]);
    return result;
}

static int take_stack(void *context, const gp_dataset_stack_t *stack)
{
    return add_stack(context, stack);
}

static int take_pseudo(void *context, const char *name)
{
    return gp_builder_row_pseudo(((capture_report_t *)context)->builder, name);
}

// What stands above the stacks of a coroutine.
static int add_creators(capture_report_t *from, uint32_t coro)
{
    const gp_stitch_taker_t taker = {take_stack, take_pseudo, from};

    return gp_stitches_take(&from->stitches, from->dataset, coro, &taker);
}

// Exact CPU time of the process, or of threads.
static uint64_t exact_of_threads(const capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    const bool *threads = from->options->selection.threads;
    uint64_t total = 0;

    if (threads == NULL)
        return gp_dataset_exact_ns(dataset);
    for (size_t i = 0; i < dataset->thread_count; i++)
        total += threads[i] ? dataset->threads[i].cpu_ns : 0;
    return total;
}

// Exact time of what was chosen; 0 = not known.
static uint64_t exact_of_kind(const capture_report_t *from, enum gp_sample_kind kind)
{
    const gp_dataset_t *dataset = from->dataset;
    const gp_selection_t *selection = &from->options->selection;
    bool any = selection->coros != NULL || selection->traces != NULL;
    uint64_t total = 0;

    if (dataset->windowed || ((any || kind != GP_KIND_CPU) && selection->threads != NULL))
        return 0;
    if (!any && kind == GP_KIND_CPU)
        return exact_of_threads(from);
    for (size_t i = 0; i < dataset->share_count; i++)
        if (gp_selection_has_share(selection, &dataset->shares[i]))
            total += gp_dataset_share_ns(dataset, &dataset->shares[i], kind);
    return total;
}

static bool has_kind(const gp_report_options_t *options, uint32_t kind)
{
    return kind == GP_KIND_CPU || options->measure == GP_MEASURE_WALL;
}

static uint64_t exact_total(const capture_report_t *from)
{
    uint64_t total = 0;

    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
        total += from->exact_ns[kind];
    return total;
}

static bool is_chosen(const capture_report_t *from, const gp_dataset_weight_t *weight)
{
    bool is_loop = weight->kind == GP_KIND_PREEMPTED &&
                   from->dataset->coros[weight->coro].record.kind == GP_CORO_THREAD;

    return has_kind(from->options, weight->kind) && !is_loop &&
           gp_selection_has_weight(&from->options->selection, from->dataset, weight);
}

static uint32_t stratum_of(const capture_report_t *from, const gp_dataset_weight_t *weight)
{
    return from->by_thread ? gp_dataset_thread_find(from->dataset, weight->thread) : weight->coro;
}

static void add_exact(capture_report_t *from, enum gp_sample_kind kind)
{
    const gp_dataset_t *dataset = from->dataset;
    const gp_selection_t *selection = &from->options->selection;

    for (size_t i = 0; i < dataset->share_count && !from->by_thread; i++)
        if (gp_selection_has_share(selection, &dataset->shares[i]))
            gp_strata_add_exact(&from->strata[kind], dataset->shares[i].coro,
                                gp_dataset_share_ns(dataset, &dataset->shares[i], kind));
    for (size_t i = 0; i < dataset->thread_count && from->by_thread && kind == GP_KIND_CPU; i++)
        if (selection->threads[i])
            gp_strata_add_exact(&from->strata[kind], (uint32_t)i, dataset->threads[i].cpu_ns);
}

static uint64_t stratified(const capture_report_t *from, const gp_dataset_weight_t *weight)
{
    return gp_strata_scale(&from->strata[weight->kind], stratum_of(from, weight),
                           weight->weight_ns);
}

static int weigh(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;

    if (dataset->keep & GP_KEEP_SCALED) {
        from->exact_ns[GP_KIND_CPU] = exact_of_kind(from, GP_KIND_CPU);
        return 0;
    }
    from->by_thread = from->options->selection.threads != NULL;
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++) {
        if (has_kind(from->options, kind) &&
            gp_strata_init(&from->strata[kind],
                           from->by_thread ? dataset->thread_count : dataset->coro_count) < 0)
            return -ENOMEM;
    }
    for (size_t i = 0; i < dataset->weight_count; i++) {
        const gp_dataset_weight_t *weight = &dataset->weights[i];
        if (is_chosen(from, weight))
            gp_strata_add_samples(&from->strata[weight->kind], stratum_of(from, weight), weight);
    }
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++) {
        if (!has_kind(from->options, kind))
            continue;
        add_exact(from, kind);
        from->exact_ns[kind] = exact_of_kind(from, kind);
        gp_strata_divide(&from->strata[kind], from->exact_ns[kind]);
    }
    for (size_t i = 0; i < dataset->weight_count; i++) {
        const gp_dataset_weight_t *weight = &dataset->weights[i];
        if (is_chosen(from, weight))
            from->strata_ns[weight->kind] += stratified(from, weight);
    }
    return 0;
}

// A weight such that its kind adds up to what the ledger says.
static uint64_t scaled_ns(const capture_report_t *from, const gp_dataset_weight_t *weight)
{
    uint64_t exact = from->exact_ns[weight->kind], sum = from->strata_ns[weight->kind];
    uint64_t scaled = stratified(from, weight);

    return exact > 0 && sum > 0 ? (uint64_t)((unsigned __int128)scaled * exact / sum) : scaled;
}

// What kind of time a row is, as its leaf.
static int add_leaf(capture_report_t *from, uint32_t kind)
{
    enum gp_pseudo leaf = gp_kind_leaf(kind);

    return leaf == 0 ? 0
                     : gp_builder_row_loc(from->builder, GP_SYMBOLIZER_NO_MODULE,
                                          GP_LOC(GP_MODULE_PSEUDO, leaf));
}

// The timeline refers to the row of a weight.
static void note_stack(capture_report_t *from, const gp_dataset_weight_t *weight)
{
    const gp_row_t *row = &from->builder->rows[from->builder->row];

    from->stacks[weight - from->dataset->weights] = (gp_timed_stack_t){
        .frames = row->frames,
        .depth = row->depth,
        .track = weight->coro,
        .is_cpu = weight->kind == GP_KIND_CPU,
    };
}

// Put the row of one weight together, as far as its stack passes the filter.
static int add_weight(capture_report_t *from, const gp_dataset_weight_t *weight)
{
    const gp_dataset_stack_t *stack = &from->dataset->stacks[weight->stack];
    bool done = from->dataset->keep & GP_KEEP_SCALED;
    uint64_t scaled = done ? (uint64_t)(weight->scaled_ns + 0.5) : scaled_ns(from, weight);
    double factor = weight->weight_ns > 0 && !done ? (double)scaled / (double)weight->weight_ns : 1;

    gp_builder_row_begin(from->builder);
    int result = add_root(from, weight);
    size_t roots = from->builder->path_len;
    if (result == 0)
        result = add_creators(from, weight->coro);
    if (result == 0 && (weight->kind == GP_KIND_CPU || stack->id != 0))
        result = add_stack(from, stack);
    if (result == 0)
        result = add_leaf(from, weight->kind);
    if (result == 0)
        result = gp_builder_row_passes(from->builder, &from->options->stacks, roots);
    if (result == 0)
        from->left_out_ns += scaled;
    if (result <= 0)
        return result;
    if (weight->kind == GP_KIND_CPU) {
        from->sampled_ns += weight->weight_ns;
        from->squares += weight->squares;
    }
    if (from->options->passed != NULL)
        from->options->passed[weight - from->dataset->weights] = true;
    if (add_label(from, weight) < 0)
        return -ENOMEM;
    result = gp_builder_row_end(from->builder, scaled, weight->samples,
                                weight->squares * factor * factor);
    if (result == 0 && from->stacks != NULL)
        note_stack(from, weight);
    return result;
}

static int add_weights(capture_report_t *from)
{
    int result = 0;

    for (size_t i = 0; i < from->dataset->weight_count && result == 0; i++)
        if (is_chosen(from, &from->dataset->weights[i]))
            result = add_weight(from, &from->dataset->weights[i]);
    return result;
}

// Time other than on the CPU of which there is no sample.
static int add_unsampled(capture_report_t *from)
{
    bool filtered = from->options->stacks.focus_count > 0;
    int result = 0;

    for (uint32_t kind = GP_KIND_CPU + 1; kind < GP_KIND_COUNT && result == 0; kind++) {
        if (from->exact_ns[kind] == 0 || from->strata_ns[kind] > 0 || filtered)
            continue;
        gp_builder_row_begin(from->builder);
        result = add_leaf(from, kind);
        if (result == 0)
            result = gp_builder_row_end(from->builder, from->exact_ns[kind], 0, 0);
    }
    return result;
}

// One row for each stack of a long slice: its share of the delays that were chosen.
static int add_hog(capture_report_t *from, const gp_dataset_hog_t *hog, uint64_t delay_ns,
                   uint64_t victims)
{
    const gp_dataset_stack_t *stacks = from->dataset->stacks;
    uint64_t weight_ns = 0, before = 0, given = 0;
    int result = 0;

    for (uint32_t i = 0; i < hog->stack_count; i++)
        weight_ns += hog->stacks[i].weight_ns;
    for (uint32_t i = 0; i < hog->stack_count && result >= 0 && weight_ns > 0; i++) {
        before += hog->stacks[i].weight_ns;
        uint64_t upto = (uint64_t)((unsigned __int128)delay_ns * before / weight_ns);
        gp_builder_row_begin(from->builder);
        result = add_creators(from, hog->coro);
        if (result == 0)
            result = add_stack(from, &stacks[hog->stacks[i].stack_id]);
        if (result == 0)
            result = gp_builder_row_passes(from->builder, &from->options->stacks, 0);
        if (result > 0)
            result = gp_builder_row_end(from->builder, upto - given, i == 0 ? victims : 0, 0);
        given = upto;
    }
    if (result < 0 || weight_ns > 0 || from->options->stacks.focus_count > 0)
        return result < 0 ? result : 0;
    gp_builder_row_begin(from->builder);
    result = gp_builder_row_pseudo(from->builder, "[no samples]");
    return result < 0 ? result : gp_builder_row_end(from->builder, delay_ns, victims, 0);
}

static int add_hogs(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    uint64_t *delays = calloc(2 * dataset->hog_count + 1, sizeof(*delays));
    int result = delays != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; i < dataset->delay_count && result == 0; i++) {
        const gp_dataset_delay_t *delay = &dataset->delays[i];
        gp_dataset_share_t who = {.coro = delay->coro, .trace = delay->trace};
        if (!gp_selection_has_share(&from->options->selection, &who))
            continue;
        delays[2 * delay->hog] += delay->delay_ns;
        delays[2 * delay->hog + 1]++;
    }
    for (size_t i = 0; i < dataset->hog_count && result == 0; i++)
        if (delays[2 * i] > 0)
            result = add_hog(from, &dataset->hogs[i], delays[2 * i], delays[2 * i + 1]);
    free(delays);
    return result;
}

static int add_rows(capture_report_t *from)
{
    if (from->options->measure == GP_MEASURE_DELAY)
        return add_hogs(from);
    return weigh(from) < 0 || add_weights(from) < 0 || add_unsampled(from) < 0 ? -ENOMEM : 0;
}

// The frame of a function that was called: the outermost one at its first instruction.
static uint32_t called_frame(capture_report_t *from, gp_loc_t loc)
{
    gp_builder_row_begin(from->builder);
    return loc != 0 && add_loc(from, loc) == 0 ? from->builder->path[0] : GP_INDEX_NONE;
}

// Calls are counted for the whole process: of a part of it the samples must tell.
static bool is_whole(const capture_report_t *from)
{
    const gp_report_options_t *options = from->options;

    return options->selection.coros == NULL && options->selection.traces == NULL &&
           options->selection.threads == NULL && options->stacks.focus_count == 0 &&
           options->stacks.ignore_count == 0 && options->by == GP_BY_NONE &&
           !options->stitch && !from->dataset->windowed && options->measure != GP_MEASURE_DELAY;
}

static int add_calls(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    int result = 0;

    if (dataset->call_count == 0 || !is_whole(from))
        return 0;
    for (size_t i = 0; i < dataset->call_count && result == 0; i++) {
        const gp_call_record_t *call = &dataset->calls[i];
        uint32_t caller = called_frame(from, call->caller_loc);
        uint32_t callee = called_frame(from, call->callee_loc);
        result = gp_builder_call(from->builder, call, caller, callee);
    }
    if (result < 0)
        return result;
    return gp_builder_calls_finish(
        from->builder, from->options->measure == GP_MEASURE_WALL ? 0 : exact_total(from));
}

// The filter has left a part of an exact time, as large as the samples say.
static gp_report_t *finish(capture_report_t *from)
{
    bool filtered = from->options->stacks.focus_count > 0 || from->options->stacks.ignore_count > 0;
    uint64_t scope = exact_total(from), kept = from->builder->report.sampled_ns;
    uint64_t all = kept + from->left_out_ns, total = scope;

    if (filtered && gp_builder_drop_unused_frames(from->builder) < 0)
        return NULL;
    if (filtered && all > 0)
        total = (uint64_t)((unsigned __int128)scope * kept / all);
    gp_report_t *report = gp_builder_finish(from->builder, total);
    from->builder = NULL;
    if (report == NULL)
        return NULL;
    report->sampled_ns = from->sampled_ns;
    report->scope_ns = scope > 0 ? scope : all;
    report->measure = from->options->measure;
    report->cpu_ns = filtered ? 0 : from->exact_ns[GP_KIND_CPU];
    // A sum of samples taken at random has the sum of their squares as its variance.
    report->variance_ns2 = filtered ? 0 : from->squares;
    report->basis = from->options->measure == GP_MEASURE_DELAY ? GP_BASIS_EXACT : scope == 0 ? GP_BASIS_SAMPLED : filtered ? GP_BASIS_ESTIMATED : GP_BASIS_EXACT;
    return report;
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
    if (dataset->windowed) {
        uint64_t to =
            dataset->window.to_ns < dataset->end_ns ? dataset->window.to_ns : dataset->end_ns;
        report->duration_ns = to > dataset->window.from_ns ? to - dataset->window.from_ns : 0;
        report->start_realtime_ns += dataset->window.from_ns;
    }
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
    if (options->wants & GP_WANT_TIMELINE) {
        from.stacks = gp_arena_alloc(&from.builder->arena,
                                     (dataset->weight_count + 1) * sizeof(*from.stacks));
        if (from.stacks == NULL)
            goto out;
    }
    if (options->stitch && gp_stitches_init(&from.stitches, dataset) < 0)
        goto out;
    if (map_modules(&from) < 0 || add_rows(&from) < 0 || add_calls(&from) < 0 || describe(&from) < 0)
        goto out;
    if (from.stacks != NULL && gp_report_timeline(from.builder, dataset, options, from.stacks) < 0)
        goto out;
    report = finish(&from);
out:
    if (report == NULL) {
        gp_builder_free(from.builder);
        errno = ENOMEM;
    }
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
        gp_strata_free(&from.strata[kind]);
    gp_stitches_free(&from.stitches);
    free(from.modules);
    return report;
}
