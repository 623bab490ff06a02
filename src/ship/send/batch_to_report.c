// SPDX-License-Identifier: MIT
#include "ship/send/batch_to_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/index.h"
#include "base/memory.h"
#include "model/kinds.h"
#include "report/report_options.h"

enum { PART_ROWS_MAX = 20000, TRACE_TEXT_SIZE = 33 };

typedef struct batch_builder {
    gp_report_t report; // first: what the caller has is this
    const gp_batch_t *batch;
    gp_report_frame_t *frames;
    uint32_t *outer; // by frame: the one that it is inlined into, plus 1; 0 = none
    gp_label_t *labels;
    gp_report_mapping_t *mappings;
    gp_report_row_t *rows;
    uint32_t **stacks; // by stack of the batch: its frames; NULL = not needed so far
    size_t frame_capacity, outer_capacity, label_capacity, mapping_capacity;
    gp_index_t frame_index, label_index;
    gp_arena_t arena;
    bool with_labels;
    uint32_t last_stack;                  // without labels: rows come by stack,
    uint32_t rows_of_last[GP_KIND_COUNT]; // and these are its rows by state, plus 1; 0 = none yet
} batch_builder_t;

bool gp_batch_next_part(const gp_batch_t *batch, gp_batch_part_t *part)
{
    static const gp_measure_t measures[] = {GP_MEASURE_CPU, GP_MEASURE_WALL, GP_MEASURE_LATENCY, GP_MEASURE_DELAY};
    if (part->to == 0 || part->measures == sizeof(measures) / sizeof(measures[0])) {
        part->from = part->to;
        part->measures = 0;
        while (part->to < batch->sample_count && part->to - part->from < PART_ROWS_MAX &&
               batch->samples[part->to].time_s == batch->samples[part->from].time_s)
            part->to++;
    }
    part->measure = measures[part->measures++];
    return part->from < part->to;
}

uint64_t gp_batch_grain_ns(const gp_batch_t *batch)
{
    uint64_t least = 0;
    for (size_t i = 1; i < batch->sample_count; i++) {
        uint64_t step = batch->samples[i].time_s - batch->samples[i - 1].time_s;
        if (step > 0 && (least == 0 || step < least))
            least = step;
    }
    return least > 0 ? least * 1000000000 : GP_BATCH_GRAIN_NS;
}

static bool batch_to_report_belongs(const gp_row_sample_t *row, gp_measure_t measure)
{
    switch (measure) {
    case GP_MEASURE_CPU:
        return row->measure == GP_ROW_TIME && row->state == GP_KIND_CPU;
    case GP_MEASURE_WALL:
        return row->measure == GP_ROW_TIME;
    case GP_MEASURE_LATENCY:
        return row->measure == GP_ROW_CRITICAL_PATH;
    case GP_MEASURE_DELAY:
        return row->measure == GP_ROW_VICTIM_TIME;
    }
    return false;
}

// A mapping for a module whose code has no names: addresses are those of its file.
static uint32_t batch_to_report_mapping_number(batch_builder_t *builder, const gp_row_frame_t *frame)
{
    uint32_t count = builder->report.mapping_count, i = 0;
    while (i < count && strcmp(builder->mappings[i].build_id, frame->build) != 0)
        i++;
    if (i == count) {
        if (gp_grow(&builder->mappings, &builder->mapping_capacity, count, sizeof(*builder->mappings)) < 0)
            return 0;
        builder->mappings[i] = (gp_report_mapping_t){.path = frame->module, .build_id = frame->build};
        builder->report.mapping_count++;
    }
    if (frame->address >= builder->mappings[i].end)
        builder->mappings[i].end = frame->address + 1;
    return i + 1;
}

typedef struct frame_key {
    gp_report_frame_t frame;
    uint32_t outer;
} frame_key_t;

static bool batch_to_report_same_frame(const void *owner, uint32_t number, const void *key)
{
    const batch_builder_t *builder = owner;
    const gp_report_frame_t *a = &builder->frames[number], *b = &((const frame_key_t *)key)->frame;
    return a->line == b->line && a->pseudo == b->pseudo && a->address == b->address &&
           builder->outer[number] == ((const frame_key_t *)key)->outer && strcmp(a->function, b->function) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->module, b->module) == 0;
}

static uint64_t batch_to_report_hash_text(uint64_t hash, const char *text)
{
    return gp_hash_more(hash, gp_hash_bytes(text, strlen(text)));
}

// Find or add a frame. Returns its number, UINT32_MAX when memory is short.
static uint32_t batch_to_report_frame_number(batch_builder_t *builder, const frame_key_t *key)
{
    uint64_t hash =
        batch_to_report_hash_text(batch_to_report_hash_text(key->outer, key->frame.function), key->frame.file);
    uint32_t number;
    hash = batch_to_report_hash_text(gp_hash_more(gp_hash_more(hash, key->frame.line), key->frame.address),
                                     key->frame.module);
    number = gp_index_find(&builder->frame_index, hash, batch_to_report_same_frame, builder, key);
    if (number != GP_INDEX_NONE)
        return number;
    number = builder->report.frame_count;
    if (gp_grow(&builder->frames, &builder->frame_capacity, number, sizeof(*builder->frames)) < 0 ||
        gp_grow(&builder->outer, &builder->outer_capacity, number, sizeof(*builder->outer)) < 0 ||
        gp_index_add(&builder->frame_index, hash, number) < 0)
        return UINT32_MAX;
    builder->frames[number] = key->frame;
    builder->outer[number] = key->outer;
    builder->report.frame_count++;
    return number;
}

static uint32_t batch_to_report_row_frame_number(batch_builder_t *builder, const gp_row_frame_t *frame, uint32_t before)
{
    frame_key_t key = {
        .frame = {.function = frame->name,
                  .file = frame->file[0] != '\0' ? frame->file : frame->module,
                  .line = frame->line,
                  .module = frame->module,
                  .inlined = frame->is_inlined && before != UINT32_MAX,
                  .address = frame->address},
    };
    key.outer = key.frame.inlined ? before + 1 : 0;
    if (frame->build[0] != '\0')
        key.frame.mapping = batch_to_report_mapping_number(builder, frame);
    return batch_to_report_frame_number(builder, &key);
}

// The frames of a stack, with room for one more; NULL when memory is short.
static uint32_t *batch_to_report_stack_frames(batch_builder_t *builder, uint32_t number)
{
    const gp_row_stack_t *stack = &builder->batch->stacks[number];
    uint32_t before = UINT32_MAX;
    if (builder->stacks[number] != NULL)
        return builder->stacks[number];
    uint32_t *frames = gp_arena_alloc(&builder->arena, (stack->depth + 1) * sizeof(*frames));
    for (uint32_t i = 0; frames != NULL && i < stack->depth; i++) {
        before = frames[i] = batch_to_report_row_frame_number(builder, &stack->frames[i], before);
        if (before == UINT32_MAX)
            return NULL;
    }
    return builder->stacks[number] = frames;
}

static bool batch_to_report_same_label(const void *owner, uint32_t number, const void *key)
{
    const gp_label_t *a = &((const batch_builder_t *)owner)->labels[number], *b = key;
    return strcmp(a->coroutine, b->coroutine) == 0 && (a->trace == NULL) == (b->trace == NULL) &&
           (a->trace == NULL || strcmp(a->trace, b->trace) == 0);
}

// Find or add what owns a row. Returns its number plus 1; 0 when memory is short.
static uint32_t batch_to_report_label_number(batch_builder_t *builder, const gp_row_sample_t *row)
{
    static const uint8_t no_trace[sizeof(row->trace)];
    char trace[TRACE_TEXT_SIZE];
    gp_label_t label = {.coroutine = row->coroutine};
    if (memcmp(row->trace, no_trace, sizeof(no_trace)) != 0) {
        gp_hex_write(trace, row->trace, sizeof(row->trace));
        label.trace = trace;
    }
    uint64_t hash = batch_to_report_hash_text(gp_hash_bytes(row->trace, sizeof(row->trace)), row->coroutine);
    uint32_t number = gp_index_find(&builder->label_index, hash, batch_to_report_same_label, builder, &label);
    if (number != GP_INDEX_NONE)
        return number + 1;
    number = builder->report.label_count;
    if (label.trace != NULL)
        label.trace = gp_arena_text(&builder->arena, trace, strlen(trace));
    label.coroutine_id = (uint64_t)number + 1; // readers tell coroutines apart by it
    if (gp_grow(&builder->labels, &builder->label_capacity, number, sizeof(*builder->labels)) < 0 ||
        gp_index_add(&builder->label_index, hash, number) < 0)
        return 0;
    builder->labels[number] = label;
    builder->report.label_count++;
    return number + 1;
}

// The frames of a row: its stack's, and one for its state, unless it ran.
static const uint32_t *batch_to_report_row_frames(batch_builder_t *builder, const gp_row_sample_t *row, uint32_t *depth)
{
    uint32_t *stack = batch_to_report_stack_frames(builder, row->stack);
    uint64_t leaf = row->state < GP_KIND_COUNT ? gp_kind_leaf(row->state) : 0;
    *depth = builder->batch->stacks[row->stack].depth;
    if (stack == NULL || leaf == 0)
        return stack;
    frame_key_t key = {.frame = {.function = gp_pseudo_name(leaf), .file = "~", .module = "", .pseudo = true}};
    uint32_t *frames = gp_arena_alloc(&builder->arena, (*depth + 1) * sizeof(*frames));
    if (frames == NULL)
        return NULL;
    if (*depth > 0)
        memcpy(frames, stack, *depth * sizeof(*frames));
    frames[*depth] = batch_to_report_frame_number(builder, &key);
    return frames[(*depth)++] != UINT32_MAX ? frames : NULL;
}

// The report's row for the same stack and state; NULL: there is none yet.
static gp_report_row_t *batch_to_report_same_row(batch_builder_t *builder, const gp_row_sample_t *row)
{
    if (builder->with_labels || row->state >= GP_KIND_COUNT)
        return NULL;
    if (row->stack != builder->last_stack)
        memset(builder->rows_of_last, 0, sizeof(builder->rows_of_last));
    builder->last_stack = row->stack;
    uint32_t *number = &builder->rows_of_last[row->state];
    if (*number != 0)
        return &builder->rows[*number - 1];
    *number = builder->report.row_count + 1;
    return NULL;
}

// A row of no weight yet; NULL when memory is short.
static gp_report_row_t *batch_to_report_new_row(batch_builder_t *builder, const gp_row_sample_t *row)
{
    gp_report_row_t *added = &builder->rows[builder->report.row_count];
    added->frames = batch_to_report_row_frames(builder, row, &added->depth);
    added->label = builder->with_labels ? batch_to_report_label_number(builder, row) : 0;
    if (added->frames == NULL || (builder->with_labels && added->label == 0))
        return NULL;
    builder->report.row_count++;
    return added;
}

static int batch_to_report_add_row(batch_builder_t *builder, const gp_row_sample_t *row)
{
    gp_report_row_t *same = batch_to_report_same_row(builder, row),
                    *to = same != NULL ? same : batch_to_report_new_row(builder, row);
    if (to == NULL)
        return -ENOMEM;
    to->weight_ns += row->weight_ns;
    to->samples += row->samples;
    builder->report.total_ns += row->weight_ns;
    builder->report.samples += row->samples;
    return 0;
}

static void batch_to_report_set_report(batch_builder_t *builder, size_t from, gp_measure_t measure,
                                       const char *const *resource)
{
    gp_report_t *report = &builder->report;
    report->frames = builder->frames;
    report->rows = builder->rows;
    report->labels = builder->labels;
    report->mappings = builder->mappings;
    report->basis = GP_BASIS_SAMPLED;
    report->scope_ns = report->total_ns;
    report->sampled_ns = measure == GP_MEASURE_CPU ? report->total_ns : 0;
    report->measure = measure;
    report->start_realtime_ns = builder->batch->samples[from].time_s * 1000000000;
    report->duration_ns = gp_batch_grain_ns(builder->batch);
    report->title = builder->batch->process->service;
    report->resource = resource;
}

gp_report_t *gp_batch_to_report(const gp_batch_t *batch, const gp_batch_part_t *part, bool with_labels,
                                const char *const *resource)
{
    batch_builder_t *builder = calloc(1, sizeof(*builder));
    int result = 0;
    if (builder == NULL)
        return NULL;
    builder->batch = batch;
    builder->with_labels = with_labels;
    builder->last_stack = UINT32_MAX;
    builder->rows = calloc(part->to - part->from + 1, sizeof(*builder->rows));
    builder->stacks = calloc(batch->stack_count + 1, sizeof(*builder->stacks));
    if (builder->rows == NULL || builder->stacks == NULL)
        result = -ENOMEM;
    for (size_t i = part->from; i < part->to && result == 0; i++)
        if (batch_to_report_belongs(&batch->samples[i], part->measure))
            result = batch_to_report_add_row(builder, &batch->samples[i]);
    if (result < 0 || builder->report.row_count == 0) {
        gp_batch_to_report_free(&builder->report);
        errno = -result;
        return NULL;
    }
    batch_to_report_set_report(builder, part->from, part->measure, resource);
    return &builder->report;
}

void gp_batch_to_report_free(gp_report_t *report)
{
    batch_builder_t *builder = (batch_builder_t *)report;
    if (builder == NULL)
        return;
    gp_index_free(&builder->frame_index);
    gp_index_free(&builder->label_index);
    gp_arena_free(&builder->arena);
    free(builder->frames);
    free(builder->outer);
    free(builder->labels);
    free(builder->mappings);
    free(builder->rows);
    free(builder->stacks);
    free(builder);
}
