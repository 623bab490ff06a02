// SPDX-License-Identifier: MIT
// Long slices where nothing tells what was ready meanwhile: how long they kept the thread, and in which code.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "report/long_slices.h"
#include "tables.h"

enum { SHOWN = 10 };

typedef struct place { // of several slices
    const char *text;
    uint64_t ns, count;
    uint32_t others;
} place_t;

static int report_slices_by_place(const void *left, const void *right)
{
    return strcmp(((const gp_long_slice_t *)left)->place, ((const gp_long_slice_t *)right)->place);
}

static int report_slices_by_time(const void *left, const void *right)
{
    uint64_t a = ((const place_t *)left)->ns, b = ((const place_t *)right)->ns;
    return a > b ? -1 : a < b;
}

// Slices of a place become neighbours. Returns how many places.
static size_t report_slices_sum_up(const gp_long_slices_t *slices, place_t *places)
{
    size_t count = 0;
    qsort(slices->items, slices->count, sizeof(*slices->items), report_slices_by_place);
    for (size_t i = 0; i < slices->count; i++) {
        const gp_long_slice_t *slice = &slices->items[i];
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

static void report_slices_print_places(const gp_long_slices_t *slices, const place_t *places, size_t count)
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

int gp_report_print_slices(const gp_input_t *source)
{
    gp_reading_t reading = {.count = 0};
    gp_long_slices_t slices;
    int result = gp_long_slices_begin(&slices, source->dataset, source->symbolizer, 0, &reading);
    place_t *places = calloc(slices.count + 1, sizeof(*places));
    if (places == NULL) {
        gp_long_slices_free(&slices);
        return -ENOMEM;
    }
    if (result == 0)
        result = gp_dataset_read(source->dataset, &reading);
    if (result == 0 && slices.count > 0)
        report_slices_print_places(&slices, places, report_slices_sum_up(&slices, places));
    gp_long_slices_free(&slices);
    free(places);
    return result;
}
