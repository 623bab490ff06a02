// SPDX-License-Identifier: MIT
// The rows of a report: made at once, or part by part.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/sample_rows.h"

typedef struct order_key { // of a row, where rows are put in order: they are four times as large
    uint64_t value;
    size_t number;
} order_key_t;

typedef struct part { // while it is handed out
    const gp_sample_rows_t *pass;
    gp_sample_rows_weights_t weights;
    order_key_t *keys;     // [2 * room]
    gp_report_row_t *rows; // [2 * room]
    size_t room;
    gp_arena_t arena;
    size_t last;    // number of the last part that is not empty
    double running; // unscaled, of all rows so far
    uint64_t given; // scaled
} part_t;

// A path below the root frame of its group.
static int report_parts_set_frames(const gp_sample_rows_t *pass, const gp_sample_rows_weight_t *weight,
                                   gp_arena_t *arena, gp_report_row_t *row)
{
    const gp_builder_path_t *path = &pass->builder->paths[weight->path];
    uint32_t root = pass->group_count > 0 ? pass->groups[weight->group].root : GP_INDEX_NONE;
    row->frames = path->frames;
    row->depth = path->depth;
    row->path = root == GP_INDEX_NONE ? weight->path + 1 : 0;
    if (root == GP_INDEX_NONE)
        return 0;
    uint32_t *frames = gp_arena_alloc(arena, ((size_t)path->depth + 1) * sizeof(*frames));
    if (frames == NULL)
        return -ENOMEM;
    frames[0] = root;
    memcpy(frames + 1, path->frames, path->depth * sizeof(*frames));
    row->frames = frames;
    row->depth = path->depth + 1;
    return 0;
}

static int report_parts_make_row(const gp_sample_rows_t *pass, const gp_sample_rows_weight_t *weight, gp_arena_t *arena,
                                 gp_report_row_t *row)
{
    *row = (gp_report_row_t){
        .label = pass->group_count > 0 ? pass->groups[weight->group].label : 0,
        .tick = pass->group_count > 0 ? pass->groups[weight->group].tick : 0,
        .weight_ns = gp_whole_ns(weight->ns),
        .samples = weight->samples,
        .squares_ns2 = weight->squares,
    };
    return report_parts_set_frames(pass, weight, arena, row);
}

// All rows, as the builder's.
static int report_parts_add_rows(gp_sample_rows_t *pass)
{
    gp_builder_t *builder = pass->builder;
    const gp_sample_rows_weights_t *weights = &pass->weights;
    gp_report_row_t *rows = realloc(builder->rows, (builder->row_count + weights->count + 1) * sizeof(*rows));
    if (rows == NULL)
        return -ENOMEM;
    builder->rows = rows;
    builder->row_capacity = builder->row_count + weights->count + 1;
    for (size_t i = 0; i < weights->count; i++) {
        if (weights->items[i].samples == 0)
            continue; // a path of a sample that was looked at but not weighed
        gp_report_row_t *row = &rows[builder->row_count++];
        if (report_parts_make_row(pass, &weights->items[i], &builder->arena, row) < 0)
            return -ENOMEM;
        builder->report.sampled_ns += row->weight_ns;
        builder->report.samples += row->samples;
    }
    gp_sample_rows_weights_free(&pass->weights);
    return 0;
}

int gp_sample_rows_finish(gp_sample_rows_t *pass)
{
    gp_report_t *report = &pass->builder->report;
    if (pass->spill.count == 0)
        return report_parts_add_rows(pass);
    gp_sample_rows_weights_free(&pass->weights);
    report->in_parts = true;
    report->rooted = pass->options.by != GP_BY_NONE;
    report->sampled_ns += gp_whole_ns(pass->sums.kept_ns);
    report->samples += pass->sums.samples;
    return 0;
}

// Scale so that the sum of all rows is exactly the total: each row gets the difference of two rounded running sums.
static void report_parts_scale_row(part_t *part, gp_report_row_t *row, double ns)
{
    uint64_t total = part->pass->builder->report.total_ns;
    double upto = (part->running += ns) * part->pass->scale;
    uint64_t most = upto < (double)total ? (uint64_t)(upto + 0.5) : total;
    row->weight_ns = most > part->given ? most - part->given : 0;
    row->squares_ns2 *= part->pass->scale * part->pass->scale;
    part->given += row->weight_ns;
}

// Put keys in order, equal ones as they were: a byte of the value at a time, the lowest first.
//   spare: order_key_t[count].
// Returns where they are then: `keys` or `spare`.
static order_key_t *report_parts_put_in_order(order_key_t *keys, order_key_t *spare, size_t count)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < count; i++)
        differ |= keys[i].value ^ keys[0].value;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t places[256] = {0}, place = 0;
        if ((differ >> shift & 0xff) == 0)
            continue;
        for (size_t i = 0; i < count; i++)
            places[keys[i].value >> shift & 0xff]++;
        for (size_t i = 0; i < 256; i++) {
            size_t as_many = places[i];
            places[i] = place;
            place += as_many;
        }
        for (size_t i = 0; i < count; i++)
            spare[places[keys[i].value >> shift & 0xff]++] = keys[i];
        order_key_t *sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

// The heaviest first, or rows of a stack together; equal rows keep their order. Returns where they are then.
static const gp_report_row_t *report_parts_sort_rows(part_t *part, size_t count)
{
    bool is_together = gp_sample_rows_is_together(part->pass);
    gp_report_row_t *rows = part->rows + part->room;
    for (size_t i = 0; i < count; i++) {
        const gp_report_row_t *row = &part->rows[i];
        part->keys[i] = (order_key_t){is_together ? (uint64_t)row->path << 32 | row->label : ~row->weight_ns, i};
    }
    const order_key_t *sorted = report_parts_put_in_order(part->keys, part->keys + part->room, count);
    for (size_t i = 0; i < count; i++)
        rows[i] = part->rows[sorted[i].number];
    return rows;
}

// The room is kept for the next part.
static int report_parts_make_room(part_t *part, size_t count)
{
    if (count <= part->room && part->rows != NULL)
        return 0;
    free(part->keys);
    free(part->rows);
    part->room = count + count / 8 + 1;
    part->keys = malloc(2 * part->room * sizeof(*part->keys));
    part->rows = malloc(2 * part->room * sizeof(*part->rows));
    return part->keys != NULL && part->rows != NULL ? 0 : -ENOMEM;
}

static int report_parts_take_weights(void *context, const void *bytes, size_t len)
{
    part_t *part = context;
    const gp_sample_rows_weight_t *weights = bytes;
    size_t count = len / sizeof(*weights);
    for (size_t i = 0; i < count; i++) {
        size_t left = count - i, block = left < GP_SAMPLE_ROWS_BLOCK ? left : GP_SAMPLE_ROWS_BLOCK;
        if (i % GP_SAMPLE_ROWS_BLOCK == 0)
            gp_sample_rows_expect_weights(&part->weights, &weights[i], block);
        if (gp_sample_rows_weigh(&part->weights, &weights[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

// The rows that the builder has of its own: they are few.
static int report_parts_first_part(part_t *part, gp_rows_taker_t *take, void *context)
{
    const gp_builder_t *builder = part->pass->builder;
    if (report_parts_make_room(part, builder->row_count) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < builder->row_count; i++) {
        part->rows[i] = builder->rows[i];
        report_parts_scale_row(part, &part->rows[i], (double)builder->rows[i].weight_ns);
    }
    return take(context, report_parts_sort_rows(part, builder->row_count), builder->row_count);
}

static int report_parts_next_part(part_t *part, size_t number, gp_rows_taker_t *take, void *context)
{
    const gp_sample_rows_t *pass = part->pass;
    int result = gp_spill_read(&pass->spill, number, sizeof(gp_sample_rows_weight_t), report_parts_take_weights, part);
    if (result == 0)
        result = report_parts_make_room(part, part->weights.count);
    for (size_t i = 0; i < part->weights.count && result == 0; i++) {
        result = report_parts_make_row(pass, &part->weights.items[i], &part->arena, &part->rows[i]);
        if (result == 0)
            report_parts_scale_row(part, &part->rows[i], part->weights.items[i].ns);
    }
    // The sums of the pass and of the parts were rounded in another order.
    if (result == 0 && number == part->last && part->weights.count > 0)
        part->rows[0].weight_ns += pass->builder->report.total_ns - part->given;
    if (result == 0)
        result = take(context, report_parts_sort_rows(part, part->weights.count), part->weights.count);
    return result;
}

// The room of the table is kept for the next part.
static void report_parts_drop(part_t *part)
{
    part->weights.count = 0;
    gp_index_clear(&part->weights.index);
    gp_arena_free(&part->arena);
    part->arena = (gp_arena_t){0};
}

static int report_parts_each_part(const gp_sample_rows_t *pass, gp_rows_taker_t *take, void *context)
{
    part_t part = {.pass = pass};
    int result = report_parts_first_part(&part, take, context);
    for (size_t i = 0; i < pass->spill.count; i++)
        if (gp_spill_bytes(&pass->spill, i) > 0)
            part.last = i;
    report_parts_drop(&part);
    for (size_t i = 0; i < pass->spill.count && result == 0; i++) {
        result = report_parts_next_part(&part, i, take, context);
        report_parts_drop(&part);
    }
    gp_sample_rows_weights_free(&part.weights);
    free(part.keys);
    free(part.rows);
    return result;
}

int gp_report_each_part(const gp_report_t *report, gp_rows_taker_t *take, void *context)
{
    if (report->in_parts) // the report is the builder's first member
        return report_parts_each_part(((const gp_builder_t *)report)->pass, take, context);
    return take(context, report->rows, report->row_count);
}

bool gp_report_is_empty(const gp_report_t *report)
{
    return report->row_count == 0 && !report->in_parts;
}
