// SPDX-License-Identifier: MIT
#include "report/long_slices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "report/report_options.h"
#include "report/sleep_call.h"

enum { NAMES = 4 };

// Functions of a language are named by anyone: of these only the ones that nothing but loops call.
static bool long_slices_waits_at(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, gp_loc_t loc)
{
    gp_sleep_call_t call = gp_sleep_call(gp_report_loc_name(dataset, symbolizer, loc));
    return call == GP_SLEEP_LOOP || (call == GP_SLEEP_MANY && GP_LOC_MODULE(loc) != GP_MODULE_LANGUAGE);
}

bool gp_sleeps_as_loops_do(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t coro, uint32_t stack)
{
    const gp_facts_stack_t *at = &dataset->facts.stacks.items[stack];
    return strcmp(dataset->facts.coros.items[coro].record.name, "[hub]") == 0 ||
           (at->depth > 0 && long_slices_waits_at(dataset, symbolizer, at->frames[0]));
}

static int long_slices_by_thread(const void *left, const void *right)
{
    const gp_dataset_hog_t *a = ((const gp_long_slice_t *)left)->hog, *b = ((const gp_long_slice_t *)right)->hog;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

// --- where most of a slice was

static const char *long_slices_name_at(const gp_long_slices_t *slices, const gp_hog_stack_t *stack, uint32_t level)
{
    const gp_facts_stack_t *at = &slices->dataset->facts.stacks.items[stack->stack_id];
    return level < at->depth
               ? gp_report_loc_name(slices->dataset, slices->symbolizer, at->frames[at->depth - 1 - level])
               : NULL;
}

// How much of a slice was in this function on this level, called as `is_on` says.
static uint64_t long_slices_weight_of(const gp_long_slices_t *slices, const gp_dataset_hog_t *hog, uint32_t level,
                                      const char *name, const bool *is_on)
{
    uint64_t weight_ns = 0;
    for (uint32_t i = 0; i < hog->stack_count; i++) {
        const char *other = is_on[i] ? long_slices_name_at(slices, &hog->stacks[i], level) : NULL;
        weight_ns += other != NULL && strcmp(other, name) == 0 ? hog->stacks[i].weight_ns : 0;
    }
    return weight_ns;
}

// The function on this level with more than `half_ns`, among stacks that the levels before have led to; NULL = none.
static const char *long_slices_step_in(const gp_long_slices_t *slices, const gp_dataset_hog_t *hog, uint32_t level,
                                       uint64_t half_ns, bool *is_on)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < hog->stack_count && name == NULL; i++) {
        const char *mine = is_on[i] ? long_slices_name_at(slices, &hog->stacks[i], level) : NULL;
        name = mine != NULL && long_slices_weight_of(slices, hog, level, mine, is_on) > half_ns ? mine : NULL;
    }
    for (uint32_t i = 0; i < hog->stack_count && name != NULL; i++) {
        const char *mine = is_on[i] ? long_slices_name_at(slices, &hog->stacks[i], level) : NULL;
        is_on[i] = mine != NULL && strcmp(mine, name) == 0;
    }
    return name;
}

// The location in the heaviest of the stacks that are on the path.
static gp_loc_t long_slices_loc_at(const gp_long_slices_t *slices, const gp_dataset_hog_t *hog, uint32_t level,
                                   const bool *is_on)
{
    uint64_t heaviest_ns = 0;
    gp_loc_t loc = 0;
    for (uint32_t i = 0; i < hog->stack_count; i++) {
        const gp_facts_stack_t *at = &slices->dataset->facts.stacks.items[hog->stacks[i].stack_id];
        if (!is_on[i] || level >= at->depth || hog->stacks[i].weight_ns <= heaviest_ns)
            continue;
        heaviest_ns = hog->stacks[i].weight_ns;
        loc = at->frames[at->depth - 1 - level];
    }
    return loc;
}

static int long_slices_write_place(gp_long_slice_t *slice, const char *const names[NAMES])
{
    size_t size = 0;
    FILE *out = open_memstream(&slice->place, &size);
    for (uint32_t i = 0; i < NAMES && i < slice->depth && out != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " < " : "", names[(slice->depth - 1 - i) % NAMES]);
    if (out != NULL && slice->depth == 0)
        fprintf(out, "[no samples]");
    return out != NULL && gp_stream_close(out) ? 0 : -ENOMEM;
}

// The path of more than half of the slice's time.
static int long_slices_find_place(const gp_long_slices_t *slices, gp_long_slice_t *slice)
{
    const char *names[NAMES] = {0}, *name;
    const gp_dataset_hog_t *hog = slice->hog;
    uint64_t half_ns = 0;
    uint32_t deepest = 0;
    bool *is_on = malloc(hog->stack_count + 1);
    for (uint32_t i = 0; i < hog->stack_count && is_on != NULL; i++) {
        uint32_t depth = slices->dataset->facts.stacks.items[hog->stacks[i].stack_id].depth;
        half_ns += hog->stacks[i].weight_ns / 2;
        is_on[i] = hog->stacks[i].weight_ns > 0;
        deepest = depth > deepest ? depth : deepest;
    }
    gp_loc_t *path = malloc((deepest + 1) * sizeof(*path));
    bool has_memory = is_on != NULL && path != NULL;
    while (has_memory && (name = long_slices_step_in(slices, hog, slice->depth, half_ns, is_on)) != NULL) {
        path[slice->depth] = long_slices_loc_at(slices, hog, slice->depth, is_on);
        names[slice->depth++ % NAMES] = name;
    }
    slice->path = path;
    free(is_on);
    return has_memory ? long_slices_write_place(slice, names) : -ENOMEM;
}

// --- the coroutines that waited meanwhile, and what the slice itself did

// The first slice of `thread` that begins at `from_ns` or later.
static size_t long_slices_first_from(const gp_long_slices_t *slices, uint32_t thread, uint64_t from_ns)
{
    size_t lo = 0, hi = slices->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const gp_dataset_hog_t *hog = slices->items[mid].hog;
        if (hog->thread < thread || (hog->thread == thread && hog->start_ns < from_ns))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void long_slices_take_own(gp_long_slices_t *slices, const gp_activity_record_t *activity, uint32_t coro)
{
    if (!activity->has_times)
        return;
    for (size_t i = long_slices_first_from(slices, activity->thread, activity->start_ns); i < slices->count; i++) {
        gp_long_slice_t *slice = &slices->items[i];
        if (slice->hog->thread != activity->thread || slice->hog->start_ns >= activity->left_ns)
            break;
        if (slice->hog->coro != coro)
            continue;
        slice->slices_ns = activity->slice_ns;
        slice->cpu_ns = activity->cpu_ns;
        slice->blocked_ns = activity->blocked_ns;
    }
}

static int long_slices_count_waiting(void *context, const gp_activity_record_t *activity)
{
    gp_long_slices_t *slices = context;
    uint32_t coro = gp_dataset_coro_find(slices->dataset, activity->coro_id);
    long_slices_take_own(slices, activity, coro);
    if (coro == GP_INDEX_NONE || slices->dataset->facts.coros.items[coro].record.kind == GP_CORO_THREAD)
        return 0;
    size_t lo = long_slices_first_from(slices, activity->thread, activity->end_ns);
    for (; lo > 0; lo--) {
        const gp_dataset_hog_t *hog = slices->items[lo - 1].hog;
        uint64_t end_ns = hog->start_ns + hog->duration_ns;
        if (hog->thread != activity->thread || end_ns <= activity->left_ns)
            break;
        uint64_t from_ns = hog->start_ns > activity->left_ns ? hog->start_ns : activity->left_ns;
        uint64_t to_ns = end_ns < activity->end_ns ? end_ns : activity->end_ns;
        slices->items[lo - 1].others += coro != hog->coro && to_ns > from_ns && to_ns - from_ns > hog->duration_ns / 2;
    }
    return 0;
}

// The innermost of the stacks that a slice slept with, or ran with, is one in which loops wait?
static bool long_slices_is_of_loop(const gp_long_slices_t *slices, const gp_dataset_hog_t *hog)
{
    for (uint32_t i = 0; i < hog->stack_count; i++)
        if (!gp_sleeps_as_loops_do(slices->dataset, slices->symbolizer, hog->coro, hog->stacks[i].stack_id))
            return false;
    return hog->stack_count > 0;
}

static void long_slices_drop(gp_long_slice_t *slice)
{
    free(slice->place);
    free(slice->path);
}

// By number of the hog, before they are sorted.
static int long_slices_find_all(gp_long_slices_t *slices)
{
    const gp_dataset_t *dataset = slices->dataset;
    gp_long_slice_t *sums = calloc(dataset->hogs.count + 1, sizeof(*sums));
    int result = sums != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < dataset->delays.count && result == 0; i++) {
        gp_long_slice_t *sum = &sums[dataset->delays.items[i].hog];
        if (!gp_long_slices_has(slices, &dataset->delays.items[i]))
            continue;
        sum->delay_ns += dataset->delays.items[i].delay_ns;
        sum->unseen_ns += dataset->delays.items[i].unseen_ns;
        sum->delays++;
    }
    for (size_t i = 0; i < dataset->hogs.count && result == 0; i++) {
        const gp_dataset_hog_t *hog = &dataset->hogs.items[i];
        if (long_slices_is_of_loop(slices, hog))
            continue;
        gp_long_slice_t *slice = &slices->items[slices->count++];
        *slice = sums[i];
        slice->hog = hog;
        result = long_slices_find_place(slices, slice);
        // -Wanalyzer-malloc-leak: the slice has the path, gp_long_slices_free() frees it
        if (result == 0 && slice->depth > 0 &&
            long_slices_waits_at(dataset, slices->symbolizer, slice->path[slice->depth - 1])) {
            long_slices_drop(slice); // most of it the loop slept, or was woken late
            slices->count--;
        }
    }
    free(sums);
    return result;
}

int gp_long_slices_begin(gp_long_slices_t *slices, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                         uint32_t trace, gp_reading_t *reading)
{
    static const gp_reader_handlers_t handlers = {.activity = long_slices_count_waiting};
    *slices =
        (gp_long_slices_t){dataset, symbolizer, trace, calloc(dataset->hogs.count + 1, sizeof(*slices->items)), 0};
    int result = slices->items != NULL ? long_slices_find_all(slices) : -ENOMEM;
    if (result == 0 && slices->count > 0) {
        qsort(slices->items, slices->count, sizeof(*slices->items), long_slices_by_thread);
        gp_reading_add(reading, &handlers, slices);
    }
    return result;
}

void gp_long_slices_free(gp_long_slices_t *slices)
{
    for (size_t i = 0; i < slices->count; i++)
        long_slices_drop(&slices->items[i]);
    free(slices->items);
}
