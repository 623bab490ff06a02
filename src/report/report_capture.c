// SPDX-License-Identifier: MIT
#include "report/losses.h"
#include "report/report_calls.h"
#include "report/report_names.h"
#include "report/report_path.h"
#include "report/report_timeline.h"
#include "report/sample_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct gp_making { // a report, while it is made
    gp_builder_t *builder;
    gp_sample_rows_t *pass;
    gp_path_rows_t *paths; // of critical paths
    const gp_dataset_t *dataset;
    const gp_report_options_t *options; // as the pass has them
    uint64_t unseen_ns;                 // of the delays
};
typedef struct gp_making capture_report_t;

// Time other than on the CPU of which there is no sample.
static int report_capture_add_unsampled(capture_report_t *from)
{
    bool filtered = from->options->stacks.focus_count > 0;
    int result = 0;
    for (uint32_t kind = GP_KIND_CPU + 1; kind < GP_KIND_COUNT && result == 0; kind++) {
        const gp_scaling_t *scaling = &from->pass->scaling;
        if (scaling->exact_ns[kind] == 0 || scaling->sampled_ns[kind] > 0 || filtered)
            continue;
        gp_builder_row_begin(from->builder);
        result = gp_sample_rows_add_leaf(from->pass, kind);
        if (result == 0)
            result = gp_builder_row_end(from->builder, scaling->exact_ns[kind], 0, 0);
    }
    return result;
}

static int report_capture_label_hog(capture_report_t *from, const gp_dataset_hog_t *hog)
{
    if (from->options->page == NULL)
        return 0;
    from->builder->row_tick = gp_sample_rows_tick(from->pass, hog->start_ns);
    from->builder->row_label = gp_report_label(from->dataset, from->builder, hog->coro, hog->trace, hog->thread);
    return from->builder->row_label != 0 ? 0 : -ENOMEM;
}

// Add a row for each stack of a long slice: its share of the chosen delays.
static int report_capture_add_hog(capture_report_t *from, const gp_dataset_hog_t *hog, uint64_t delay_ns,
                                  uint64_t victims)
{
    const gp_facts_stack_t *stacks = from->dataset->facts.stacks.items;
    uint64_t weight_ns = 0, before = 0, given = 0;
    int result = report_capture_label_hog(from, hog);
    for (uint32_t i = 0; i < hog->stack_count; i++)
        weight_ns += hog->stacks[i].weight_ns;
    for (uint32_t i = 0; i < hog->stack_count && result >= 0 && weight_ns > 0; i++) {
        before += hog->stacks[i].weight_ns;
        uint64_t upto = (uint64_t)((unsigned __int128)delay_ns * before / weight_ns);
        gp_builder_row_begin(from->builder);
        result = gp_sample_rows_add_creators(from->pass, hog->coro);
        if (result == 0)
            result = gp_sample_rows_add_stack(from->pass, &stacks[hog->stacks[i].stack_id]);
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

static int report_capture_add_hogs(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    uint64_t *delays = calloc(2 * dataset->hogs.count + 1, sizeof(*delays));
    int result = delays != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < dataset->delays.count && result == 0; i++) {
        const gp_dataset_delay_t *delay = &dataset->delays.items[i];
        gp_dataset_share_t victim = {.coro = delay->coro, .trace = delay->trace};
        if (!gp_selection_has_share(&from->options->selection, &victim))
            continue;
        delays[2 * delay->hog] += delay->delay_ns;
        delays[2 * delay->hog + 1]++;
        from->unseen_ns += delay->unseen_ns;
    }
    for (size_t i = 0; i < dataset->hogs.count && result == 0; i++)
        if (delays[2 * i] > 0)
            result = report_capture_add_hog(from, &dataset->hogs.items[i], delays[2 * i], delays[2 * i + 1]);
    free(delays);
    return result;
}

// Rows that are not made of samples: their weights are exact as they are.
static bool report_capture_has_own_rows(const capture_report_t *from)
{
    return from->options->measure == GP_MEASURE_DELAY || from->options->measure == GP_MEASURE_LATENCY;
}

// Say what the rows, and the timeline, are made of.
static int report_capture_begin_rows(capture_report_t *from, gp_reading_t *reading)
{
    if (from->options->measure == GP_MEASURE_LATENCY) {
        from->paths = gp_report_paths_begin(from->pass, reading);
        return from->paths != NULL ? 0 : -errno;
    }
    if (from->options->measure != GP_MEASURE_DELAY)
        gp_sample_rows_begin_reading(from->pass, reading);
    return from->options->wants & GP_WANT_TIMELINE ? gp_report_timeline_begin(from->pass, reading) : 0;
}

static int report_capture_add_rows(capture_report_t *from)
{
    const gp_stack_filter_t *stacks = &from->options->stacks;
    bool samples = !report_capture_has_own_rows(from);
    int result = from->paths != NULL ? gp_report_paths_add(from->paths)
                 : samples           ? gp_sample_rows_end_reading(from->pass)
                                     : report_capture_add_hogs(from);
    if (result == 0 && samples)
        result = report_capture_add_unsampled(from);
    if (result == 0 && (stacks->focus_count > 0 || stacks->ignore_count > 0))
        result = gp_builder_drop_unused_frames(from->builder);
    return result == 0 && samples ? gp_sample_rows_finish(from->pass) : result;
}

// The frame of a function that was called: the outermost one at its first instruction.
static uint32_t report_capture_called_frame(capture_report_t *from, gp_loc_t loc)
{
    gp_builder_row_begin(from->builder);
    return loc != 0 && gp_builder_row_loc(from->builder, loc) == 0 ? from->builder->path[0] : GP_INDEX_NONE;
}

// Calls are counted for the whole process: of a part of it the samples must tell.
static bool report_capture_is_whole(const capture_report_t *from)
{
    const gp_report_options_t *options = from->options;
    return options->selection.coros == NULL && options->selection.traces == NULL &&
           options->selection.threads == NULL && options->stacks.focus_count == 0 &&
           options->stacks.ignore_count == 0 && options->by == GP_BY_NONE && !options->stitch &&
           !from->dataset->windowed && !report_capture_has_own_rows(from);
}

static int report_capture_add_calls(capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    int result = 0;
    if (dataset->calls.count == 0 || !report_capture_is_whole(from))
        return 0;
    for (size_t i = 0; i < dataset->calls.count && result == 0; i++) {
        const gp_call_count_t *call = &dataset->calls.items[i];
        uint32_t caller = report_capture_called_frame(from, call->caller_loc);
        uint32_t callee = report_capture_called_frame(from, call->callee_loc);
        result = gp_builder_call(from->builder, call, caller, callee);
    }
    if (result < 0)
        return result;
    return gp_builder_calls_finish(
        from->builder, from->options->measure == GP_MEASURE_WALL ? 0 : gp_scaling_exact_ns(&from->pass->scaling));
}

static gp_basis_t report_capture_basis_of(const capture_report_t *from, uint64_t scope, bool filtered)
{
    if (report_capture_has_own_rows(from))
        return GP_BASIS_EXACT;
    if (scope == 0)
        return GP_BASIS_SAMPLED;
    return filtered ? GP_BASIS_ESTIMATED : GP_BASIS_EXACT;
}

// The filter has left a part of an exact time, as large as the samples say.
static gp_report_t *report_capture_finish(capture_report_t *from)
{
    const gp_sample_rows_t *pass = from->pass;
    bool filtered = from->options->stacks.focus_count > 0 || from->options->stacks.ignore_count > 0;
    bool delays = from->options->measure == GP_MEASURE_DELAY, own = report_capture_has_own_rows(from);
    uint64_t scope = own ? 0 : gp_scaling_exact_ns(&pass->scaling);
    uint64_t kept = from->builder->report.sampled_ns;
    uint64_t all = kept + gp_whole_ns(pass->sums.left_out_ns), total = scope;
    if (filtered && all > 0)
        total = (uint64_t)((unsigned __int128)scope * kept / all);
    gp_report_t *report = gp_builder_finish(from->builder, total);
    if (report == NULL) {
        from->builder = NULL;
        return NULL;
    }
    report->sampled_ns = pass->sums.sampled_ns;
    report->scope_ns = scope > 0 ? scope : all;
    report->measure = from->options->measure;
    report->is_unknown = delays && !gp_dataset_knows_ready(from->dataset);
    report->unseen_ns = from->unseen_ns;
    report->cpu_ns = filtered || own ? 0 : pass->scaling.exact_ns[GP_KIND_CPU];
    // A sum of samples taken at random has the sum of their squares as its variance.
    report->variance_ns2 = filtered ? 0 : pass->sums.squares;
    report->basis = report_capture_basis_of(from, scope, filtered);
    return report;
}

// The facts of a capture, as a list.
static const char *const *report_capture_list_not_known(const capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    const char **list = gp_arena_alloc(&from->builder->arena, (dataset->facts.metas.count + 1) * sizeof(*list));
    size_t count = 0;
    for (size_t i = 0; i < dataset->facts.metas.count && list != NULL; i++)
        if (strcmp(dataset->facts.metas.items[i].key, GP_NOT_KNOWN_KEY) == 0)
            list[count++] = gp_arena_text(&from->builder->arena, dataset->facts.metas.items[i].value,
                                          dataset->facts.metas.items[i].value_len);
    return list; // allocated zeroed, the list ends with NULL
}

static int report_capture_describe(const capture_report_t *from)
{
    const gp_dataset_t *dataset = from->dataset;
    gp_report_t *report = &from->builder->report;
    const char *slash = strrchr(dataset->facts.exe, '/');
    const char *name = slash ? slash + 1 : dataset->facts.exe;
    if (name[0] == '\0')
        name = "profile";
    report->duration_ns = dataset->facts.end_ns;
    report->start_realtime_ns = dataset->facts.header.start_realtime_ns;
    report->pid = dataset->facts.header.pid;
    if (dataset->windowed) {
        uint64_t to = dataset->window.to_ns < dataset->facts.end_ns ? dataset->window.to_ns : dataset->facts.end_ns;
        report->duration_ns = to > dataset->window.from_ns ? to - dataset->window.from_ns : 0;
        report->start_realtime_ns += dataset->window.from_ns;
    }
    report->frequency_hz = dataset->facts.header.frequency_hz;
    report->title = gp_arena_text(&from->builder->arena, name, strlen(name));
    report->counters = gp_arena_copy(&from->builder->arena, dataset->facts.counters, sizeof(dataset->facts.counters));
    report->counter_count = GP_COUNTER_COUNT;
    report->not_known = report_capture_list_not_known(from);
    report->process_cpu_ns = dataset->facts.totals.process_cpu_ns;
    report->own_share = gp_losses_own_share(dataset);
    return report->title != NULL && report->counters != NULL ? 0 : -ENOMEM;
}

static void report_capture_free_making(capture_report_t *from)
{
    gp_report_paths_free(from->paths);
    free(from);
}

gp_making_t *gp_report_begin(const gp_dataset_t *dataset, const gp_report_options_t *options,
                             gp_symbolizer_t *symbolizer, gp_reading_t *reading)
{
    capture_report_t *from = calloc(1, sizeof(*from));
    if (from == NULL)
        return NULL;
    from->builder = gp_builder_create(&dataset->facts, symbolizer, options->wants);
    from->dataset = dataset;
    if (from->builder != NULL)
        from->pass = gp_sample_rows_create(from->builder, dataset, options);
    from->options = from->pass != NULL ? &from->pass->options : NULL;
    int result = from->pass != NULL ? report_capture_begin_rows(from, reading) : -ENOMEM;
    if (result == 0)
        return from;
    gp_builder_free(from->builder);
    report_capture_free_making(from);
    errno = -result;
    return NULL;
}

gp_report_t *gp_report_end(gp_making_t *from, int result)
{
    if (result == 0)
        result = report_capture_add_rows(from);
    if (result == 0)
        result = report_capture_add_calls(from);
    if (result == 0)
        result = report_capture_describe(from);
    if (result == 0 && from->options->wants & GP_WANT_TIMELINE)
        result = gp_report_timeline_end(from->pass);
    gp_report_t *report = result == 0 ? report_capture_finish(from) : NULL;
    if (report == NULL)
        gp_builder_free(from->builder);
    report_capture_free_making(from);
    if (report == NULL)
        errno = result < 0 ? -result : ENOMEM;
    return report;
}

gp_report_t *gp_report_from_capture(const gp_dataset_t *dataset, const gp_report_options_t *options,
                                    gp_symbolizer_t *symbolizer)
{
    gp_reading_t reading = {0};
    if (options->wants & GP_WANT_PAGE)
        return gp_report_with_page(dataset, options, symbolizer);
    gp_making_t *making = gp_report_begin(dataset, options, symbolizer, &reading);
    return making != NULL ? gp_report_end(making, gp_dataset_read(dataset, &reading)) : NULL;
}
