// SPDX-License-Identifier: MIT
#include "report/sample_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report_names.h"

// More weights than this are put by; they take 16 MiB with their index. Parts hold more than weights, so they are
// smaller.
enum { WEIGHTS_MAX = 200000, PART_SAMPLES = 25000, PARTS_MAX = 1024, PART_GROUPS = 1 << 14 };

static bool sample_rows_same_weight(const void *owner, uint32_t number, const void *key)
{
    const gp_sample_rows_weight_t *a = &((const gp_sample_rows_weights_t *)owner)->items[number], *b = key;
    return a->group == b->group && a->path == b->path;
}

static gp_sample_rows_weight_t *sample_rows_new_weight(gp_sample_rows_weights_t *weights, uint32_t group, uint32_t path)
{
    if (gp_grow(&weights->items, &weights->capacity, weights->count, sizeof(*weights->items)) < 0)
        return NULL;
    weights->items[weights->count] = (gp_sample_rows_weight_t){.group = group, .path = path};
    return &weights->items[weights->count++];
}

static uint64_t sample_rows_hash_weight(const gp_sample_rows_weight_t *weight)
{
    return gp_hash_u64((uint64_t)weight->group << 32 | weight->path);
}

void gp_sample_rows_expect_weights(const gp_sample_rows_weights_t *weights, const gp_sample_rows_weight_t *more,
                                   size_t count)
{
    for (size_t i = 0; i < count; i++)
        gp_index_prefetch(&weights->index, sample_rows_hash_weight(&more[i]));
    for (size_t i = 0; i < count; i++) {
        uint32_t number = gp_index_guess(&weights->index, sample_rows_hash_weight(&more[i]));
        if (number < weights->count)
            gp_prefetch(&weights->items[number]);
    }
}

int gp_sample_rows_weigh(gp_sample_rows_weights_t *weights, const gp_sample_rows_weight_t *more)
{
    uint64_t hash = sample_rows_hash_weight(more);
    uint32_t number = gp_index_find(&weights->index, hash, sample_rows_same_weight, weights, more);
    gp_sample_rows_weight_t *weight = number != GP_INDEX_NONE ? &weights->items[number] : NULL;
    if (weight == NULL) {
        weight = sample_rows_new_weight(weights, more->group, more->path);
        if (weight == NULL || gp_index_add(&weights->index, hash, (uint32_t)weights->count - 1) < 0)
            return -ENOMEM;
    }
    gp_sample_rows_add_weight(weight, more->samples, more->ns, more->squares);
    return 0;
}

void gp_sample_rows_weights_free(gp_sample_rows_weights_t *weights)
{
    free(weights->items);
    gp_index_free(&weights->index);
    *weights = (gp_sample_rows_weights_t){0};
}

// The same stack is in one part: there are more of them than should be kept, with a root. Where stacks are together
// every so many groups are a part of their own: there may be more groups than a part should have rows.
static size_t sample_rows_part_of(const gp_sample_rows_t *pass, const gp_sample_rows_weight_t *weight)
{
    uint32_t root = pass->groups[weight->group].root;
    if (gp_sample_rows_is_together(pass))
        return (size_t)(gp_hash_u64((uint64_t)(weight->group / PART_GROUPS) << 32 | weight->path) % pass->spill.count);
    return (size_t)(gp_hash_u64(root != GP_INDEX_NONE ? root : weight->group) % pass->spill.count);
}

int gp_sample_rows_spill(gp_sample_rows_t *pass)
{
    gp_sample_rows_weights_t *weights = &pass->weights;
    uint64_t parts = pass->dataset->samples_read / PART_SAMPLES + 2;
    int result = 0;
    if (pass->spill.count == 0)
        result = gp_spill_init(&pass->spill, parts < PARTS_MAX ? (size_t)parts : PARTS_MAX);
    for (size_t i = 0; i < weights->count && result == 0; i++)
        result = gp_spill_add(&pass->spill, sample_rows_part_of(pass, &weights->items[i]), &weights->items[i],
                              sizeof(weights->items[i]));
    weights->count = 0;
    gp_index_clear(&weights->index);
    return result;
}

static bool sample_rows_same_group(const void *owner, uint32_t number, const void *key)
{
    const gp_sample_rows_group_t *a = &((const gp_sample_rows_t *)owner)->groups[number], *b = key;
    return a->label == b->label && a->root == b->root && a->tick == b->tick;
}

static bool sample_rows_same_owner(const void *pass, uint32_t number, const void *key)
{
    const gp_sample_rows_owner_t *a = &((const gp_sample_rows_t *)pass)->owners[number], *b = key;
    return a->coro == b->coro && a->trace == b->trace && a->thread == b->thread && a->span == b->span &&
           a->tick == b->tick;
}

// The frame that --by puts at the root, GP_INDEX_NONE without it.
static int sample_rows_find_root(gp_sample_rows_t *pass, const gp_sample_rows_owner_t *owner, uint32_t *root)
{
    char text[256];
    *root = GP_INDEX_NONE;
    if (pass->options.by == GP_BY_NONE)
        return 0;
    if (pass->options.by == GP_BY_TRACE)
        gp_report_trace_label(pass->dataset, owner->trace, false, text, sizeof(text));
    else if (pass->options.by == GP_BY_SPAN)
        snprintf(text, sizeof(text), "[span %016" PRIx64 "]",
                 owner->span != 0 ? pass->dataset->spans.items[owner->span - 1].is.id : 0);
    else
        gp_report_coro_label(pass->dataset, owner->coro, pass->builder->names.symbolizer, false, text, sizeof(text));
    gp_report_frame_t frame = {.function = text, .file = "~", .module = "", .pseudo = true};
    *root = gp_builder_frame(pass->builder, &frame);
    return *root != GP_INDEX_NONE ? 0 : -ENOMEM;
}

static int sample_rows_find_label(gp_sample_rows_t *pass, const gp_sample_rows_owner_t *owner, uint32_t *label)
{
    unsigned wants = pass->options.wants;
    *label = 0;
    if (wants & GP_WANT_LABELS)
        *label = gp_report_label(pass->dataset, pass->builder, owner->coro, owner->trace, owner->thread);
    else if (wants & GP_WANT_HEAVIEST && pass->heaviest[owner->coro])
        *label = gp_report_coro_only_label(pass->dataset, pass->builder, owner->coro);
    else
        return 0;
    return *label != 0 ? 0 : -ENOMEM;
}

// Returns the number of the group, GP_INDEX_NONE when memory is short.
static uint32_t sample_rows_find_group(gp_sample_rows_t *pass, const gp_sample_rows_owner_t *owner)
{
    gp_sample_rows_group_t key = {.tick = owner->tick};
    if (sample_rows_find_root(pass, owner, &key.root) < 0 || sample_rows_find_label(pass, owner, &key.label) < 0)
        return GP_INDEX_NONE;
    uint64_t hash = gp_hash_more(gp_hash_u64((uint64_t)key.root << 32 | key.label), key.tick);
    uint32_t number = gp_index_find(&pass->group_index, hash, sample_rows_same_group, pass, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&pass->groups, &pass->group_capacity, pass->group_count, sizeof(key)) < 0 ||
        gp_index_add(&pass->group_index, hash, (uint32_t)pass->group_count) < 0)
        return GP_INDEX_NONE;
    pass->groups[pass->group_count] = key;
    return (uint32_t)pass->group_count++;
}

static const gp_sample_rows_owner_t *sample_rows_find_owner(gp_sample_rows_t *pass, gp_sample_rows_owner_t key)
{
    uint64_t hash =
        gp_hash_more(gp_hash_u64((uint64_t)key.coro << 32 | key.trace), key.thread ^ (uint64_t)key.span << 32);
    hash = gp_hash_more(hash, key.tick);
    uint32_t number = gp_index_find(&pass->owner_index, hash, sample_rows_same_owner, pass, &key);
    if (number != GP_INDEX_NONE)
        return &pass->owners[number];
    key.group = sample_rows_find_group(pass, &key);
    if (key.group == GP_INDEX_NONE ||
        gp_grow(&pass->owners, &pass->owner_capacity, pass->owner_count, sizeof(key)) < 0 ||
        gp_index_add(&pass->owner_index, hash, (uint32_t)pass->owner_count) < 0)
        return NULL;
    pass->owners[pass->owner_count] = key;
    return &pass->owners[pass->owner_count++];
}

// A coroutine mostly goes on working for the same trace on the same thread.
static uint32_t sample_rows_group_of(gp_sample_rows_t *pass, const gp_sample_rows_sample_t *seen,
                                     const gp_sample_record_t *sample)
{
    const gp_sample_rows_owner_t key = {
        .coro = pass->by_coro ? seen->coro : 0,
        .trace = pass->by_trace ? seen->trace : 0,
        .thread = pass->by_thread ? sample->thread : 0,
        .span = pass->spans != NULL ? gp_span_find(pass->spans, seen->coro, sample->time_ns) + 1 : 0,
        .tick = gp_sample_rows_tick(pass, sample->time_ns),
    };
    uint32_t *last = &pass->last_owner[pass->by_coro ? seen->coro : seen->trace];
    if (*last != 0 && sample_rows_same_owner(pass, *last - 1, &key))
        return pass->owners[*last - 1].group;
    const gp_sample_rows_owner_t *owner = sample_rows_find_owner(pass, key);
    if (owner == NULL)
        return GP_INDEX_NONE;
    *last = (uint32_t)(owner - pass->owners) + 1;
    return owner->group;
}

// Paths are numbered one after the other: while there is one group, they are the weights' numbers.
static int sample_rows_weigh_path(gp_sample_rows_t *pass, const gp_sample_rows_sample_t *seen)
{
    gp_sample_rows_weights_t *weights = &pass->weights;
    while (weights->count <= seen->path)
        if (sample_rows_new_weight(weights, 0, (uint32_t)weights->count) == NULL)
            return -ENOMEM;
    gp_sample_rows_add_weight(&weights->items[seen->path], seen->samples, seen->ns, seen->squares);
    return 0;
}

int gp_sample_rows_weigh_waiting(gp_sample_rows_t *pass)
{
    int result = 0;
    gp_sample_rows_expect_weights(&pass->weights, pass->waiting, pass->waiting_count);
    for (size_t i = 0; i < pass->waiting_count && result == 0; i++) {
        result = pass->weights.count >= WEIGHTS_MAX ? gp_sample_rows_spill(pass) : 0;
        if (result == 0)
            result = gp_sample_rows_weigh(&pass->weights, &pass->waiting[i]);
    }
    pass->waiting_count = 0;
    return result;
}

int gp_sample_rows_weigh_sample(gp_sample_rows_t *pass, const gp_sample_record_t *sample,
                                const gp_sample_rows_sample_t *seen)
{
    int result;
    if (pass->last_owner == NULL)
        return sample_rows_weigh_path(pass, seen);
    if (pass->waiting_count == GP_SAMPLE_ROWS_BLOCK && (result = gp_sample_rows_weigh_waiting(pass)) < 0)
        return result;
    gp_sample_rows_weight_t *more = &pass->waiting[pass->waiting_count++];
    *more = (gp_sample_rows_weight_t){
        .group = sample_rows_group_of(pass, seen, sample),
        .path = seen->path,
        .samples = seen->samples,
        .ns = seen->ns,
        .squares = seen->squares,
    };
    return more->group != GP_INDEX_NONE ? 0 : -ENOMEM;
}

static int sample_rows_map_modules(gp_sample_rows_t *pass)
{
    const gp_dataset_t *dataset = pass->dataset;
    int result = 0;
    for (size_t i = 0; i < dataset->facts.modules.count && result == 0; i++) {
        const gp_module_info_t *module = &dataset->facts.modules.items[i];
        gp_report_mapping_t mapping = {.path = module->path, .start = module->start, .end = module->end};
        uint32_t number = gp_facts_module_number(&pass->builder->names, GP_LOC(module->id, 0));
        result =
            gp_builder_mapping(pass->builder, number, module->bias, &mapping, module->build_id, module->build_id_len);
    }
    return result;
}

static int sample_rows_init(gp_sample_rows_t *pass)
{
    const gp_dataset_t *dataset = pass->dataset;
    const gp_report_options_t *options = &pass->options;
    bool labels = options->wants & GP_WANT_LABELS, heaviest = options->wants & GP_WANT_HEAVIEST;
    bool grouped = labels || heaviest || options->by != GP_BY_NONE;
    pass->by_coro = labels || heaviest || options->by == GP_BY_COROUTINE;
    pass->by_trace = labels || options->by == GP_BY_TRACE || (options->sums != NULL && options->sums->by_trace);
    pass->by_thread = labels;
    pass->paths = calloc((dataset->facts.stacks.count + 1) * GP_KIND_COUNT, sizeof(*pass->paths));
    if (options->wants & GP_WANT_TIMELINE)
        pass->coros_seen = calloc(dataset->facts.coros.count + 1, sizeof(*pass->coros_seen));
    if (options->by == GP_BY_SPAN && (pass->spans = gp_span_finder_create(dataset)) == NULL)
        return -ENOMEM;
    if (grouped)
        pass->last_owner =
            calloc((pass->by_coro ? dataset->facts.coros.count : dataset->facts.traces.count) + 1, sizeof(uint32_t));
    if (pass->paths == NULL || (options->wants & GP_WANT_TIMELINE && pass->coros_seen == NULL) ||
        (grouped && pass->last_owner == NULL) || (options->stitch && gp_stitches_init(&pass->stitches, dataset) < 0) ||
        gp_scaling_init(&pass->scaling, dataset, options) < 0 || sample_rows_map_modules(pass) < 0)
        return -ENOMEM;
    return heaviest ? gp_sample_rows_find_heaviest(pass) : 0;
}

gp_sample_rows_t *gp_sample_rows_create(gp_builder_t *builder, const gp_dataset_t *dataset,
                                        const gp_report_options_t *options)
{
    gp_sample_rows_t *pass = calloc(1, sizeof(*pass));
    if (pass == NULL)
        return NULL;
    pass->builder = builder;
    builder->pass = pass;
    pass->dataset = dataset;
    pass->options = *options;
    pass->last_thread_number = GP_INDEX_NONE;
    if (sample_rows_init(pass) == 0)
        return pass;
    errno = ENOMEM;
    return NULL;
}

void gp_sample_rows_free(gp_sample_rows_t *pass)
{
    if (pass == NULL)
        return;
    gp_sample_rows_weights_free(&pass->weights);
    gp_scaling_free(&pass->scaling);
    gp_spill_free(&pass->spill);
    if (pass->timeline != NULL)
        pass->timeline_free(pass->timeline);
    gp_index_free(&pass->group_index);
    gp_index_free(&pass->owner_index);
    gp_index_free(&pass->stitched_index);
    gp_stitches_free(&pass->stitches);
    gp_span_finder_free(pass->spans);
    free(pass->stitched);
    free(pass->heaviest);
    free(pass->paths);
    free(pass->groups);
    free(pass->owners);
    free(pass->last_owner);
    free(pass->coros_seen);
    free(pass);
}
