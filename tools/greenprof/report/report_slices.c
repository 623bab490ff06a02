// SPDX-License-Identifier: MIT
// Long slices where nothing tells what was ready meanwhile: how long they kept the thread, and in which code.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/census_held.h"
#include "print.h"
#include "report/report_names.h"
#include "tables.h"

enum { SHOWN = 10, NAMES = 4 };

typedef struct slice {
    const gp_dataset_hog_t *hog;
    char *place;     // where most of it was
    uint32_t others; // coroutines of its thread that waited for most of it
} slice_t;

typedef struct slices {
    const gp_dataset_t *dataset;
    slice_t *items; // by thread, then by beginning: those of a thread do not overlap
    size_t count;
} slices_t;

typedef struct place { // of several slices
    const char *text;
    uint64_t ns, count;
    uint32_t others;
} place_t;

static int report_slices_by_thread(const void *left, const void *right)
{
    const gp_dataset_hog_t *a = ((const slice_t *)left)->hog, *b = ((const slice_t *)right)->hog;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int report_slices_by_place(const void *left, const void *right)
{
    return strcmp(((const slice_t *)left)->place, ((const slice_t *)right)->place);
}

static int report_slices_by_time(const void *left, const void *right)
{
    uint64_t a = ((const place_t *)left)->ns, b = ((const place_t *)right)->ns;
    return a > b ? -1 : a < b;
}

// --- where most of a slice was

static const char *report_slices_name_at(const gp_source_t *source, const gp_hog_stack_t *stack, uint32_t level)
{
    const gp_facts_stack_t *at = &source->dataset->facts.stacks.items[stack->stack_id];
    return level < at->depth
               ? gp_report_loc_name(source->dataset, source->symbolizer, at->frames[at->depth - 1 - level])
               : NULL;
}

// How much of a slice was in this function on this level, called as `is_on` says.
static uint64_t report_slices_weight_of(const gp_source_t *source, const gp_dataset_hog_t *hog, uint32_t level,
                                        const char *name, const bool *is_on)
{
    uint64_t weight_ns = 0;
    for (uint32_t i = 0; i < hog->stack_count; i++) {
        const char *other = is_on[i] ? report_slices_name_at(source, &hog->stacks[i], level) : NULL;
        weight_ns += other != NULL && strcmp(other, name) == 0 ? hog->stacks[i].weight_ns : 0;
    }
    return weight_ns;
}

// The function on this level with more than `half_ns`, among stacks that the levels before have led to; NULL = none.
static const char *report_slices_step_in(const gp_source_t *source, const gp_dataset_hog_t *hog, uint32_t level,
                                         uint64_t half_ns, bool *is_on)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < hog->stack_count && name == NULL; i++) {
        const char *mine = is_on[i] ? report_slices_name_at(source, &hog->stacks[i], level) : NULL;
        name = mine != NULL && report_slices_weight_of(source, hog, level, mine, is_on) > half_ns ? mine : NULL;
    }
    for (uint32_t i = 0; i < hog->stack_count && name != NULL; i++) {
        const char *mine = is_on[i] ? report_slices_name_at(source, &hog->stacks[i], level) : NULL;
        is_on[i] = mine != NULL && strcmp(mine, name) == 0;
    }
    return name;
}

// The path that more than half of the slice's time is on, innermost first. The caller frees it; NULL: memory is short.
static char *report_slices_place_of(const gp_source_t *source, const gp_dataset_hog_t *hog)
{
    const char *names[NAMES] = {0}, *name;
    uint64_t half_ns = 0;
    uint32_t level = 0;
    char *text = NULL;
    size_t size = 0;
    bool *is_on = malloc(hog->stack_count + 1);
    FILE *out = is_on != NULL ? open_memstream(&text, &size) : NULL;
    for (uint32_t i = 0; i < hog->stack_count && out != NULL; i++) {
        half_ns += hog->stacks[i].weight_ns / 2;
        is_on[i] = hog->stacks[i].weight_ns > 0;
    }
    while (out != NULL && (name = report_slices_step_in(source, hog, level, half_ns, is_on)) != NULL)
        names[level++ % NAMES] = name;
    for (uint32_t i = 0; i < NAMES && i < level; i++)
        fprintf(out, "%s%s", i > 0 ? " < " : "", names[(level - 1 - i) % NAMES]);
    if (out != NULL && level == 0)
        fprintf(out, "[no samples]");
    free(is_on);
    return out != NULL && fclose(out) == 0 ? text : NULL;
}

// --- who waited meanwhile

static int report_slices_count_waiting(void *context, const gp_activity_record_t *activity)
{
    slices_t *slices = context;
    size_t lo = 0, hi = slices->count;
    uint32_t coro = gp_dataset_coro_find(slices->dataset, activity->coro_id);
    if (coro == GP_INDEX_NONE || slices->dataset->facts.coros.items[coro].record.kind == GP_CORO_THREAD)
        return 0;
    while (lo < hi) { // the first that begins after the wait
        size_t mid = lo + (hi - lo) / 2;
        const gp_dataset_hog_t *hog = slices->items[mid].hog;
        if (hog->thread < activity->thread || (hog->thread == activity->thread && hog->start_ns < activity->end_ns))
            lo = mid + 1;
        else
            hi = mid;
    }
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

// Sum up the slices of each place. Returns how many places.
static size_t report_slices_sum_up(const slices_t *slices, place_t *places)
{
    size_t count = 0;
    qsort(slices->items, slices->count, sizeof(*slices->items), report_slices_by_place);
    for (size_t i = 0; i < slices->count; i++) {
        const slice_t *slice = &slices->items[i];
        if (count == 0 || strcmp(places[count - 1].text, slice->place) != 0)
            places[count++] = (place_t){.text = slice->place};
        place_t *place = &places[count - 1];
        place->ns += slice->hog->duration_ns;
        place->count++;
        place->others = slice->others > place->others ? slice->others : place->others;
    }
    qsort(places, count, sizeof(*places), report_slices_by_time);
    return count;
}

static void report_slices_print_place(const place_t *place)
{
    gp_print_seconds(place->ns, 9);
    printf(" %8" PRIu64 "  ", place->count);
    gp_print_text(place->text);
    if (place->others > 0)
        printf("; %s%" PRIu32 " other%s [waiting] meanwhile", place->count > 1 ? "up to " : "", place->others,
               place->others == 1 ? " was" : "s were");
    printf("\n");
}

static void report_slices_print_places(const slices_t *slices, const place_t *places, size_t count)
{
    uint64_t all_ns = 0;
    for (size_t i = 0; i < count; i++)
        all_ns += places[i].ns;
    printf("   %zu long slice%s kept their threads for ", slices->count, slices->count == 1 ? "" : "s");
    gp_print_seconds(all_ns, 0);
    printf(" s\n\n  seconds   slices  where most of them was\n");
    for (size_t i = 0; i < count && i < SHOWN; i++)
        report_slices_print_place(&places[i]);
    if (count > SHOWN)
        printf("   and %zu other places\n", count - SHOWN);
    printf("\n");
}

// The innermost of the stacks that a slice slept with, or ran with, is one in which loops wait?
static bool report_slices_is_of_loop(const gp_source_t *source, const gp_dataset_hog_t *hog)
{
    for (uint32_t i = 0; i < hog->stack_count; i++)
        if (!gp_census_sleeps_as_loops_do(source, hog->coro, hog->stacks[i].stack_id))
            return false;
    return hog->stack_count > 0;
}

static int report_slices_find_slices(const gp_source_t *source, slices_t *slices)
{
    for (size_t i = 0; i < source->dataset->hogs.count; i++) {
        const gp_dataset_hog_t *hog = &source->dataset->hogs.items[i];
        if (report_slices_is_of_loop(source, hog))
            continue;
        slices->items[slices->count] = (slice_t){.hog = hog, .place = report_slices_place_of(source, hog)};
        if (slices->items[slices->count++].place == NULL)
            return -ENOMEM;
    }
    if (slices->count > 0)
        qsort(slices->items, slices->count, sizeof(*slices->items), report_slices_by_thread);
    return 0;
}

int gp_report_print_slices(const gp_source_t *source)
{
    const gp_dataset_t *dataset = source->dataset;
    const gp_reader_handlers_t handlers = {.activity = report_slices_count_waiting};
    slices_t slices = {dataset, calloc(dataset->hogs.count + 1, sizeof(slice_t)), 0};
    place_t *places = calloc(dataset->hogs.count + 1, sizeof(*places));
    int result = slices.items != NULL && places != NULL ? report_slices_find_slices(source, &slices) : -ENOMEM;
    if (result == 0 && slices.count > 0)
        result = gp_dataset_read_for(dataset, &handlers, &slices);
    if (result == 0 && slices.count > 0)
        report_slices_print_places(&slices, places, report_slices_sum_up(&slices, places));
    for (size_t i = 0; i < slices.count; i++)
        free(slices.items[i].place);
    free(slices.items);
    free(places);
    return result;
}
