// SPDX-License-Identifier: MIT
#include "report/sample_rows.h"

#include <errno.h>
#include <stdlib.h>

// Matches of a frame, kept for every frame: a bit for each of `focus`, and these.
enum { MATCH_IGNORED = 1u << GP_FOCUS_MAX };

static bool report_filter_matches(const regex_t *regex, const gp_report_frame_t *frame)
{
    return regexec(regex, frame->function, 0, NULL, 0) == 0 ||
           (!frame->pseudo &&
            (regexec(regex, frame->file, 0, NULL, 0) == 0 || regexec(regex, frame->module, 0, NULL, 0) == 0));
}

static uint32_t report_filter_match_frame(const gp_stack_filter_t *filter, const gp_report_frame_t *frame)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < filter->focus_count; i++)
        if (report_filter_matches(&filter->focus[i], frame))
            bits |= 1u << i;
    for (size_t i = 0; i < filter->ignore_count; i++)
        if (report_filter_matches(&filter->ignore[i], frame))
            bits |= MATCH_IGNORED;
    return bits;
}

int gp_builder_row_passes(gp_builder_t *builder, const gp_stack_filter_t *filter, size_t first)
{
    uint32_t all = (1u << filter->focus_count) - 1, bits = 0;
    if (filter->focus_count == 0 && filter->ignore_count == 0)
        return 1;
    while (builder->match_count < builder->frame_count) {
        if (gp_grow(&builder->matches, &builder->match_capacity, builder->match_count, sizeof(*builder->matches)) < 0)
            return -ENOMEM;
        builder->matches[builder->match_count] =
            report_filter_match_frame(filter, &builder->frames[builder->match_count]);
        builder->match_count++;
    }
    for (size_t i = first; i < builder->path_len; i++)
        bits |= builder->matches[builder->path[i]];
    return (bits & all) == all && !(bits & MATCH_IGNORED);
}

static void report_filter_mark(const uint32_t *frames, uint32_t depth, uint32_t *numbers)
{
    for (uint32_t i = 0; i < depth; i++)
        numbers[frames[i]] = 1;
}

// Frames are the builder's own until it ends.
static void report_filter_renumber(const uint32_t *frames, uint32_t depth, const uint32_t *numbers)
{
    uint32_t *changed = (uint32_t *)frames;
    for (uint32_t i = 0; i < depth; i++)
        changed[i] = numbers[changed[i]] - 1;
}

int gp_builder_drop_unused_frames(gp_builder_t *builder)
{
    gp_sample_rows_t *pass = builder->pass;
    uint32_t *numbers = calloc(builder->frame_count + 1, sizeof(*numbers)); // new number plus 1
    size_t kept = 0;
    if (numbers == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < builder->row_count; i++)
        report_filter_mark(builder->rows[i].frames, builder->rows[i].depth, numbers);
    for (size_t i = 0; i < builder->path_count; i++)
        report_filter_mark(builder->paths[i].frames, builder->paths[i].depth, numbers);
    for (size_t i = 0; i < pass->group_count; i++)
        if (pass->groups[i].root != GP_INDEX_NONE)
            numbers[pass->groups[i].root] = 1;
    for (size_t i = 0; i < builder->frame_count; i++) {
        if (numbers[i] == 0)
            continue;
        builder->frames[kept] = builder->frames[i];
        numbers[i] = (uint32_t)++kept;
    }
    builder->frame_count = kept;
    for (size_t i = 0; i < builder->row_count; i++)
        report_filter_renumber(builder->rows[i].frames, builder->rows[i].depth, numbers);
    for (size_t i = 0; i < builder->path_count; i++)
        report_filter_renumber(builder->paths[i].frames, builder->paths[i].depth, numbers);
    for (size_t i = 0; i < pass->group_count; i++)
        if (pass->groups[i].root != GP_INDEX_NONE)
            pass->groups[i].root = numbers[pass->groups[i].root] - 1;
    free(numbers);
    return 0;
}
