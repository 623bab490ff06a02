// SPDX-License-Identifier: MIT
// The facts of a sample: its coroutine, whether it is chosen, and the path of its stack.
#include <errno.h>

#include "report/sample_rows.h"

// The frames of a stack, with the frames above it and the leaf of its state, as a path of the builder's.
static int report_pass_look_make_path(gp_sample_rows_t *pass, uint32_t coro, const gp_facts_stack_t *stack,
                                      uint32_t kind, uint32_t *path)
{
    gp_builder_row_begin(pass->builder);
    int result = gp_sample_rows_add_creators(pass, coro);
    if (result == 0 && (kind == GP_KIND_CPU || stack->id != 0))
        result = gp_sample_rows_add_stack(pass, stack);
    if (result == 0 && !(stack->depth > 0 && gp_kind_is_told(stack->frames[0])))
        result = gp_sample_rows_add_leaf(pass, kind);
    if (result == 0)
        result = gp_builder_row_passes(pass->builder, &pass->options.stacks, 0);
    if (result == 0)
        *path = GP_PATH_LEFT_OUT;
    if (result <= 0)
        return result;
    uint32_t number = gp_builder_path(pass->builder);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    *path = GP_PATH_FIRST + number;
    return 0;
}

static bool report_pass_look_same_stitched(const void *owner, uint32_t number, const void *key)
{
    const gp_sample_rows_stitched_t *a = &((const gp_sample_rows_t *)owner)->stitched[number], *b = key;
    return a->stitch == b->stitch && a->slot == b->slot;
}

// Where the path of a coroutine's stack and kind stands. Returns NULL when memory is short.
static uint32_t *report_pass_look_path_place(gp_sample_rows_t *pass, uint32_t coro, uint32_t slot)
{
    if (pass->stitches.of_coro == NULL || pass->stitches.of_coro[coro] == 0)
        return &pass->paths[slot];
    const gp_sample_rows_stitched_t key = {.stitch = pass->stitches.of_coro[coro], .slot = slot};
    uint64_t hash = gp_hash_u64((uint64_t)key.stitch << 32 | slot);
    uint32_t number = gp_index_find(&pass->stitched_index, hash, report_pass_look_same_stitched, pass, &key);
    if (number != GP_INDEX_NONE)
        return &pass->stitched[number].path;
    if (gp_grow(&pass->stitched, &pass->stitched_capacity, pass->stitched_count, sizeof(key)) < 0 ||
        gp_index_add(&pass->stitched_index, hash, (uint32_t)pass->stitched_count) < 0)
        return NULL;
    pass->stitched[pass->stitched_count] = key;
    return &pass->stitched[pass->stitched_count++].path;
}

static uint32_t report_pass_look_thread_number(gp_sample_rows_t *pass, uint32_t index)
{
    if (pass->last_thread != index) {
        pass->last_thread = index;
        pass->last_thread_number = gp_dataset_thread_find(pass->dataset, index);
    }
    return pass->last_thread_number;
}

// Is the sample's owner selected? Sets its numbers.
static bool report_pass_look_is_chosen(gp_sample_rows_t *pass, const gp_sample_record_t *sample,
                                       gp_sample_rows_sample_t *seen, uint32_t *thread)
{
    const gp_selection_t *selection = &pass->options.selection;
    const gp_dataset_t *dataset = pass->dataset;
    seen->coro = gp_dataset_coro_find(dataset, sample->coro_id);
    seen->trace = 0;
    if (pass->by_trace || selection->traces != NULL)
        seen->trace = gp_dataset_trace_index_find(dataset, sample->trace);
    if (seen->coro == GP_INDEX_NONE || seen->trace == GP_INDEX_NONE)
        return false; // the file is another one by now
    if (gp_scaling_is_loop(dataset, seen->coro, sample->kind) ||
        (selection->coros != NULL && !selection->coros[seen->coro]) ||
        (selection->traces != NULL && !selection->traces[seen->trace]))
        return false;
    *thread = GP_INDEX_NONE;
    if (selection->threads == NULL)
        return true;
    *thread = report_pass_look_thread_number(pass, sample->thread);
    return *thread != GP_INDEX_NONE && selection->threads[*thread];
}

int gp_sample_rows_look(gp_sample_rows_t *pass, const gp_sample_record_t *sample, gp_sample_rows_sample_t *seen)
{
    const gp_dataset_t *dataset = pass->dataset;
    uint32_t thread;
    if (sample->kind >= GP_KIND_COUNT || !gp_scaling_has_kind(&pass->options, sample->kind) ||
        !gp_dataset_has_sample(dataset, sample) || !report_pass_look_is_chosen(pass, sample, seen, &thread))
        return 0;
    uint32_t stack = gp_dataset_stack_find(dataset, sample->stack_id);
    if (stack == GP_INDEX_NONE)
        return 0;
    // By kind, then by stack: what is mostly on-CPU samples stays close together.
    uint32_t *path =
        report_pass_look_path_place(pass, seen->coro, sample->kind * (uint32_t)dataset->facts.stacks.count + stack);
    if (path == NULL)
        return -ENOMEM;
    if (*path == GP_PATH_NOT_YET) {
        int result =
            report_pass_look_make_path(pass, seen->coro, &dataset->facts.stacks.items[stack], sample->kind, path);
        if (result < 0)
            return result;
    }
    seen->path = *path == GP_PATH_LEFT_OUT ? GP_INDEX_NONE : *path - GP_PATH_FIRST;
    seen->ns = (double)sample->weight_ns * gp_scaling_factor(&pass->scaling, sample->kind, seen->coro, thread);
    if (gp_dataset_is_lasting(sample))
        seen->ns *= dataset->coros.items[seen->coro].lasting_kept;
    seen->samples = 1;
    seen->squares = seen->ns * seen->ns;
    const gp_sum_record_t *sum = gp_dataset_sum_of(dataset, sample);
    if (sum != NULL) {
        double scale = sample->weight_ns > 0 ? seen->ns / (double)sample->weight_ns : 0;
        seen->samples = sum->samples;
        seen->squares = sum->squares_ns2 * scale * scale;
    }
    return 1;
}
