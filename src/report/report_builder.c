// SPDX-License-Identifier: MIT
#include "report/sample_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

gp_builder_t *gp_builder_create(const gp_facts_t *facts, gp_symbolizer_t *symbolizer, unsigned wants)
{
    gp_builder_t *builder = calloc(1, sizeof(*builder));
    if (builder != NULL) {
        builder->names = (gp_namer_t){.facts = facts, .symbolizer = symbolizer};
        builder->wants = wants;
    }
    return builder;
}

int gp_builder_reserve(gp_builder_t *builder, size_t frames)
{
    if (gp_reserve(&builder->frames, &builder->frame_capacity, frames, sizeof(*builder->frames)) < 0 ||
        gp_reserve(&builder->locs, &builder->loc_capacity, frames, sizeof(*builder->locs)) < 0 ||
        gp_reserve(&builder->loc_frames, &builder->loc_frame_capacity, frames, sizeof(*builder->loc_frames)) < 0 ||
        gp_index_reserve(&builder->frame_index, frames) < 0)
        return -ENOMEM;
    return gp_index_reserve(&builder->loc_index, frames);
}

static bool report_builder_same_frame(const void *owner, uint32_t number, const void *key)
{
    const gp_report_frame_t *a = &((const gp_builder_t *)owner)->frames[number], *b = key;
    return a->line == b->line && a->first_line == b->first_line && a->pseudo == b->pseudo && a->address == b->address &&
           a->inlined == b->inlined && a->mapping == b->mapping && strcmp(a->function, b->function) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->module, b->module) == 0;
}

static bool report_builder_copy_texts(gp_builder_t *builder, gp_report_frame_t *frame)
{
    frame->function = gp_arena_text(&builder->arena, frame->function, strlen(frame->function));
    frame->file = gp_arena_text(&builder->arena, frame->file, strlen(frame->file));
    frame->module = gp_arena_text(&builder->arena, frame->module, strlen(frame->module));
    return frame->function != NULL && frame->file != NULL && frame->module != NULL;
}

// Find or add a frame.
//   stay: its texts live as long as the report.
static uint32_t report_builder_find_frame(gp_builder_t *builder, const gp_report_frame_t *frame, bool stay)
{
    uint64_t hash = gp_hash_bytes(frame->function, strlen(frame->function));
    hash = gp_hash_more(hash, gp_hash_bytes(frame->file, strlen(frame->file)));
    hash = gp_hash_more(hash, (uint64_t)frame->line << 32 | frame->first_line);
    hash = gp_hash_more(hash, frame->address);
    uint32_t number = gp_index_find(&builder->frame_index, hash, report_builder_same_frame, builder, frame);
    if (number != GP_INDEX_NONE)
        return number;

    gp_report_frame_t kept = *frame;
    if ((!stay && !report_builder_copy_texts(builder, &kept)) ||
        gp_grow(&builder->frames, &builder->frame_capacity, builder->frame_count, sizeof(*builder->frames)) < 0 ||
        gp_index_add(&builder->frame_index, hash, (uint32_t)builder->frame_count) < 0)
        return GP_INDEX_NONE;
    builder->frames[builder->frame_count] = kept;
    return (uint32_t)builder->frame_count++;
}

uint32_t gp_builder_frame(gp_builder_t *builder, const gp_report_frame_t *frame)
{
    return report_builder_find_frame(builder, frame, false);
}

static int report_builder_path_push(gp_builder_t *builder, uint32_t frame)
{
    if (frame == GP_INDEX_NONE ||
        gp_grow(&builder->path, &builder->path_capacity, builder->path_len, sizeof(*builder->path)) < 0)
        return -ENOMEM;
    builder->path[builder->path_len++] = frame;
    return 0;
}

void gp_builder_row_begin(gp_builder_t *builder)
{
    builder->path_len = 0;
}

int gp_builder_row_pseudo(gp_builder_t *builder, const char *name)
{
    gp_report_frame_t frame = {.function = name, .file = "~", .module = "", .pseudo = true};
    return report_builder_path_push(builder, gp_builder_frame(builder, &frame));
}

static bool report_builder_same_loc(const void *owner, uint32_t number, const void *key)
{
    return ((const gp_builder_t *)owner)->locs[number].loc == *(const gp_loc_t *)key;
}

// Add the frames of a symbol, outermost first.
//   frame: what they have in common; its texts are those of the symbol, which stay or do not.
static int report_builder_add_symbol_frames(gp_builder_t *builder, const gp_symbol_t *symbol,
                                            const gp_report_frame_t *common, bool stay)
{
    if (symbol->outer != NULL && report_builder_add_symbol_frames(builder, symbol->outer, common, stay) < 0)
        return -ENOMEM;
    if (gp_symbol_is_hidden(symbol))
        return 0;
    gp_report_frame_t frame = *common;
    frame.inlined = frame.address != 0 && symbol->outer != NULL;
    frame.function = symbol->function;
    frame.file = frame.pseudo ? "~" : symbol->file;
    frame.line = symbol->line;
    frame.first_line = symbol->first_line;
    frame.module = symbol->module;
    uint32_t number = report_builder_find_frame(builder, &frame, stay);
    if (number == GP_INDEX_NONE || gp_grow(&builder->loc_frames, &builder->loc_frame_capacity, builder->loc_frame_count,
                                           sizeof(*builder->loc_frames)) < 0)
        return -ENOMEM;
    builder->loc_frames[builder->loc_frame_count++] = number;
    return 0;
}

static const gp_builder_loc_t *report_builder_loc_frames(gp_builder_t *builder, gp_loc_t loc)
{
    uint64_t hash = gp_hash_u64(loc);
    uint32_t number = gp_index_find(&builder->loc_index, hash, report_builder_same_loc, builder, &loc);
    gp_builder_loc_t found = {.loc = loc, .first = (uint32_t)builder->loc_frame_count};
    gp_name_t name;
    if (number != GP_INDEX_NONE)
        return &builder->locs[number];
    if (gp_facts_name(&builder->names, loc, &name) < 0)
        return NULL;
    bool is_code = name.symbol != &name.made;
    uint32_t mapping = is_code ? gp_builder_mapping_find(builder, gp_facts_module_number(&builder->names, loc)) : 0;
    uint64_t bias = mapping != 0 ? builder->mapping_modules[mapping - 1].bias : 0;
    const gp_report_frame_t common = {
        .mapping = mapping,
        .address = is_code && builder->wants & GP_WANT_ADDRESSES ? bias + GP_LOC_OFFSET(loc) : 0,
        .pseudo = name.is_pseudo,
    };
    if (report_builder_add_symbol_frames(builder, name.symbol, &common, is_code && builder->symbols_stay) < 0 ||
        gp_grow(&builder->locs, &builder->loc_capacity, builder->loc_count, sizeof(*builder->locs)) < 0 ||
        gp_index_add(&builder->loc_index, hash, (uint32_t)builder->loc_count) < 0)
        return NULL;
    found.count = (uint32_t)builder->loc_frame_count - found.first;
    builder->locs[builder->loc_count] = found;
    return &builder->locs[builder->loc_count++];
}

int gp_builder_row_loc(gp_builder_t *builder, gp_loc_t loc)
{
    const gp_builder_loc_t *found = report_builder_loc_frames(builder, loc);
    if (found == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < found->count; i++)
        if (report_builder_path_push(builder, builder->loc_frames[found->first + i]) < 0)
            return -ENOMEM;
    return 0;
}

static bool report_builder_same_path(const void *owner, uint32_t number, const void *key)
{
    const gp_builder_t *builder = key;
    const gp_builder_path_t *path = &((const gp_builder_t *)owner)->paths[number];
    return path->depth == builder->path_len &&
           memcmp(path->frames, builder->path, path->depth * sizeof(*path->frames)) == 0;
}

uint32_t gp_builder_path(gp_builder_t *builder)
{
    if (builder->path_len == 0 && gp_builder_row_pseudo(builder, "[no stack]") < 0)
        return GP_INDEX_NONE;
    size_t bytes = builder->path_len * sizeof(*builder->path);
    uint64_t hash = gp_hash_bytes(builder->path, bytes);
    uint32_t number = gp_index_find(&builder->path_index, hash, report_builder_same_path, builder, builder);

    if (number != GP_INDEX_NONE)
        return number;
    gp_builder_path_t path = {
        .frames = gp_arena_copy(&builder->arena, builder->path, bytes),
        .depth = (uint32_t)builder->path_len,
    };
    if (path.frames == NULL ||
        gp_grow(&builder->paths, &builder->paths_capacity, builder->path_count, sizeof(*builder->paths)) < 0 ||
        gp_index_add(&builder->path_index, hash, (uint32_t)builder->path_count) < 0)
        return GP_INDEX_NONE;
    builder->paths[builder->path_count] = path;
    return (uint32_t)builder->path_count++;
}

static bool report_builder_same_row(const void *owner, uint32_t number, const void *key)
{
    const gp_builder_t *builder = key;
    const gp_report_row_t *row = &((const gp_builder_t *)owner)->rows[number];
    return row->label == builder->row_label && row->tick == builder->row_tick && row->depth == builder->path_len &&
           memcmp(row->frames, builder->path, row->depth * sizeof(*row->frames)) == 0;
}

int gp_builder_row_end(gp_builder_t *builder, uint64_t weight_ns, uint64_t samples, double squares)
{
    if (builder->path_len == 0 && gp_builder_row_pseudo(builder, "[no stack]") < 0)
        return -ENOMEM;
    size_t bytes = builder->path_len * sizeof(*builder->path);
    uint64_t hash =
        gp_hash_more(gp_hash_bytes(builder->path, bytes), (uint64_t)builder->row_label << 32 | builder->row_tick);
    uint32_t number = gp_index_find(&builder->row_index, hash, report_builder_same_row, builder, builder);

    if (number == GP_INDEX_NONE) {
        gp_report_row_t row = {
            .frames = gp_arena_copy(&builder->arena, builder->path, bytes),
            .depth = (uint32_t)builder->path_len,
            .label = builder->row_label,
            .tick = builder->row_tick,
        };
        if (row.frames == NULL ||
            gp_grow(&builder->rows, &builder->row_capacity, builder->row_count, sizeof(*builder->rows)) < 0 ||
            gp_index_add(&builder->row_index, hash, (uint32_t)builder->row_count) < 0)
            return -ENOMEM;
        number = (uint32_t)builder->row_count++;
        builder->rows[number] = row;
    }
    builder->rows[number].weight_ns += weight_ns;
    builder->rows[number].samples += samples;
    builder->rows[number].squares_ns2 += squares;
    builder->report.sampled_ns += weight_ns;
    builder->report.samples += samples;
    return 0;
}

// Scale so that the sum is exactly `total_ns`: each row gets the difference of two rounded running
// sums, which is within 1 ns of its own share.
static void report_builder_scale_rows(gp_builder_t *builder, uint64_t total_ns)
{
    uint64_t sampled = builder->report.sampled_ns;
    uint64_t running = 0, given = 0;
    double factor = (double)total_ns / (double)sampled;
    for (size_t i = 0; i < builder->row_count && sampled > 0; i++) {
        running += builder->rows[i].weight_ns;
        uint64_t upto = (uint64_t)((unsigned __int128)running * total_ns / sampled);
        builder->rows[i].weight_ns = upto - given;
        builder->rows[i].squares_ns2 *= factor * factor;
        given = upto;
    }
}

static int report_builder_compare_rows(const void *left, const void *right)
{
    const gp_report_row_t *a = left, *b = right;
    if (a->weight_ns != b->weight_ns)
        return a->weight_ns > b->weight_ns ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    for (uint32_t i = 0; i < a->depth; i++)
        if (a->frames[i] != b->frames[i])
            return a->frames[i] < b->frames[i] ? -1 : 1;
    return a->label < b->label ? -1 : a->label > b->label;
}

// Time is known but not where it went: one row says so.
static int report_builder_add_no_samples(gp_builder_t *builder, uint64_t total_ns)
{
    builder->row_count = 0; // rows without weight, if any
    gp_index_free(&builder->row_index);
    if (total_ns == 0)
        return 0;
    gp_builder_row_begin(builder);
    if (gp_builder_row_pseudo(builder, "[no samples]") < 0 || gp_builder_row_end(builder, total_ns, 0, 0) < 0)
        return -ENOMEM;
    builder->report.sampled_ns = 0;
    return 0;
}

gp_report_t *gp_builder_finish(gp_builder_t *builder, uint64_t total_ns)
{
    gp_report_t *report = &builder->report;
    report->basis = total_ns > 0 ? GP_BASIS_EXACT : GP_BASIS_SAMPLED;
    if (report->sampled_ns == 0) {
        if (report_builder_add_no_samples(builder, total_ns) < 0) {
            gp_builder_free(builder);
            errno = ENOMEM;
            return NULL;
        }
    } else if (total_ns == 0) {
        total_ns = report->sampled_ns;
    } else if (!report->in_parts) {
        report_builder_scale_rows(builder, total_ns);
    }
    if (report->in_parts) // they are scaled and sorted when they are made
        builder->pass->scale = report->sampled_ns > 0 ? (double)total_ns / (double)report->sampled_ns : 1;
    else if (builder->row_count > 0)
        qsort(builder->rows, builder->row_count, sizeof(*builder->rows), report_builder_compare_rows);
    report->total_ns = report->scope_ns = total_ns;
    report->frames = builder->frames;
    report->frame_count = (uint32_t)builder->frame_count;
    report->rows = builder->rows;
    report->row_count = report->in_parts ? 0 : (uint32_t)builder->row_count;
    report->path_count = (uint32_t)builder->path_count;
    report->labels = builder->labels;
    report->label_count = (uint32_t)builder->label_count;
    report->mappings = builder->mappings;
    report->mapping_count = (uint32_t)builder->mapping_count;
    return report;
}

void gp_builder_free(gp_builder_t *builder)
{
    if (builder == NULL)
        return;
    free(builder->frames);
    free(builder->rows);
    free(builder->calls);
    gp_sample_rows_free(builder->pass);
    gp_page_free(builder->report.page);
    free(builder->paths);
    free(builder->locs);
    free(builder->loc_frames);
    free(builder->path);
    free(builder->matches);
    free(builder->mappings);
    free(builder->mapping_modules);
    free(builder->labels);
    gp_index_free(&builder->mapping_index);
    gp_index_free(&builder->label_index);
    gp_index_free(&builder->frame_index);
    gp_index_free(&builder->row_index);
    gp_index_free(&builder->path_index);
    gp_index_free(&builder->loc_index);
    gp_arena_free(&builder->arena);
    free(builder);
}

void gp_report_free(gp_report_t *report)
{
    // The report is the builder's first member.
    gp_builder_free((gp_builder_t *)report);
}
