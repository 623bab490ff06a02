#include "export/report_filter.h"

#include <errno.h>
#include <stdlib.h>

#include "export/report_builder.h"

bool gp_selection_has_share(const gp_selection_t *selection, const gp_dataset_share_t *share)
{
    return (selection->coros == NULL || selection->coros[share->coro]) &&
           (selection->traces == NULL || selection->traces[share->trace]);
}

bool gp_selection_has_weight(const gp_selection_t *selection, const gp_dataset_t *dataset,
                             const gp_dataset_weight_t *weight)
{
    if ((selection->coros != NULL && !selection->coros[weight->coro]) ||
        (selection->traces != NULL && !selection->traces[weight->trace]))
        return false;
    if (selection->threads == NULL)
        return true;
    uint32_t thread = gp_dataset_thread_find(dataset, weight->thread);
    return thread != GP_INDEX_NONE && selection->threads[thread];
}

// What a frame matches, kept for every frame: a bit for each of `focus`, and these.
enum { MATCH_IGNORED = 1u << GP_FOCUS_MAX };

static bool matches(const regex_t *regex, const gp_frame_t *frame)
{
    return regexec(regex, frame->function, 0, NULL, 0) == 0 ||
           (!frame->pseudo && (regexec(regex, frame->file, 0, NULL, 0) == 0 ||
                               regexec(regex, frame->module, 0, NULL, 0) == 0));
}

static uint32_t match_frame(const gp_stack_filter_t *filter, const gp_frame_t *frame)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < filter->focus_count; i++)
        if (matches(&filter->focus[i], frame))
            bits |= 1u << i;
    for (size_t i = 0; i < filter->ignore_count; i++)
        if (matches(&filter->ignore[i], frame))
            bits |= MATCH_IGNORED;
    return bits;
}

int gp_builder_row_passes(gp_builder_t *builder, const gp_stack_filter_t *filter, size_t first)
{
    uint32_t all = (1u << filter->focus_count) - 1, bits = 0;

    if (filter->focus_count == 0 && filter->ignore_count == 0)
        return 1;
    while (builder->match_count < builder->frame_count) {
        if (gp_grow(&builder->matches, &builder->match_capacity, builder->match_count,
                    sizeof(*builder->matches)) < 0)
            return -ENOMEM;
        builder->matches[builder->match_count] =
            match_frame(filter, &builder->frames[builder->match_count]);
        builder->match_count++;
    }
    for (size_t i = first; i < builder->path_len; i++)
        bits |= builder->matches[builder->path[i]];
    return (bits & all) == all && !(bits & MATCH_IGNORED);
}

int gp_builder_drop_unused_frames(gp_builder_t *builder)
{
    uint32_t *numbers = calloc(builder->frame_count + 1, sizeof(*numbers)); // new number plus 1
    size_t kept = 0;

    if (numbers == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < builder->row_count; i++)
        for (uint32_t j = 0; j < builder->rows[i].depth; j++)
            numbers[builder->rows[i].frames[j]] = 1;
    for (size_t i = 0; i < builder->frame_count; i++) {
        if (numbers[i] == 0)
            continue;
        builder->frames[kept] = builder->frames[i];
        numbers[i] = (uint32_t)++kept;
    }
    builder->frame_count = kept;
    for (size_t i = 0; i < builder->row_count; i++) {
        uint32_t *frames = (uint32_t *)builder->rows[i].frames; // the builder's own until it ends
        for (uint32_t j = 0; j < builder->rows[i].depth; j++)
            frames[j] = numbers[frames[j]] - 1;
    }
    free(numbers);
    return 0;
}
