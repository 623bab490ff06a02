// SPDX-License-Identifier: MIT
#include "report/sorter.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/spill.h"

enum { BUFFER_BYTES = 32 * 1024 }; // of a run, while runs are merged

typedef struct run {
    uint64_t at, left;   // records that were not read yet: where, how many
    const uint8_t *next; // the run's first record that was not handed out; NULL = there is none
    size_t buffered;     // records from `next` on
    uint8_t *buffer;     // NULL: `next` points to what was never put by
    size_t number;       // of the run: the earlier goes first
} run_t;

typedef struct merge {
    const gp_sorter_t *sorter;
    run_t *runs;
    run_t **heap; // the smallest first
    size_t count;
} merge_t;

void gp_sorter_init(gp_sorter_t *sorter, size_t record_bytes, gp_sorter_compare_t *compare)
{
    *sorter = (gp_sorter_t){
        .record_bytes = record_bytes, .compare = compare, .run_records = GP_SORTER_BYTES / record_bytes, .fd = -1};
}

// Merge sort: qsort() of glibc is one as long as memory is not short, but does not promise to be.
static int sorter_sort_collected(gp_sorter_t *sorter)
{
    size_t bytes = sorter->record_bytes, count = sorter->count;
    uint8_t *from = sorter->records, *to = count > 1 ? malloc(count * bytes) : NULL;
    if (count <= 1)
        return 0;
    if (to == NULL)
        return -ENOMEM;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t a = start, a_end = start + width < count ? start + width : count;
            size_t b = a_end, b_end = b + width < count ? b + width : count;
            for (size_t out = start; out < b_end; out++) {
                size_t *take =
                    a < a_end && (b >= b_end || sorter->compare(from + a * bytes, from + b * bytes) <= 0) ? &a : &b;
                memcpy(to + out * bytes, from + (*take)++ * bytes, bytes);
            }
        }
        uint8_t *sorted = to;
        to = from;
        from = sorted;
    }
    sorter->records = from;
    sorter->capacity = count;
    free(to);
    return 0;
}

static int sorter_spill_run(gp_sorter_t *sorter)
{
    int result = sorter_sort_collected(sorter);
    if (result == 0 && sorter->fd < 0) {
        sorter->fd = gp_temporary_file();
        result = sorter->fd < 0 ? sorter->fd : 0;
    }
    if (result == 0)
        result = gp_temporary_write(sorter->fd, sorter->records, sorter->count * sorter->record_bytes);
    if (result < 0)
        return result;
    sorter->run_count++;
    sorter->count = 0;
    return 0;
}

int gp_sorter_add(gp_sorter_t *sorter, const void *record)
{
    int result = sorter->count == sorter->run_records ? sorter_spill_run(sorter) : 0;
    if (result < 0)
        return result;
    if (sorter->count == sorter->capacity) {
        size_t capacity = sorter->capacity > 0 ? sorter->capacity * 2 : 64;
        uint8_t *records = realloc(sorter->records, capacity * sorter->record_bytes);
        if (records == NULL)
            return -ENOMEM;
        sorter->records = records;
        sorter->capacity = capacity;
    }
    memcpy(sorter->records + sorter->count++ * sorter->record_bytes, record, sorter->record_bytes);
    return 0;
}

int gp_sorter_end(gp_sorter_t *sorter)
{
    return sorter_sort_collected(sorter);
}

// Read on, where a run's buffer is used up.
static int sorter_refill(const merge_t *merge, run_t *run)
{
    size_t bytes = merge->sorter->record_bytes, most = BUFFER_BYTES / bytes;
    size_t count = run->left < most ? (size_t)run->left : most, done = 0;
    run->next = NULL;
    if (count == 0)
        return 0;
    while (done < count * bytes) {
        ssize_t got =
            pread(merge->sorter->fd, run->buffer + done, count * bytes - done, (off_t)(run->at * bytes + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        done += (size_t)got;
    }
    run->at += count;
    run->left -= count;
    run->next = run->buffer;
    run->buffered = count;
    return 0;
}

static bool sorter_goes_before(const merge_t *merge, const run_t *a, const run_t *b)
{
    int order = merge->sorter->compare(a->next, b->next);
    return order != 0 ? order < 0 : a->number < b->number;
}

static void sorter_sift_down(merge_t *merge, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < merge->count; child++)
            if (sorter_goes_before(merge, merge->heap[child], merge->heap[least]))
                least = child;
        if (least == at)
            return;
        run_t *moved = merge->heap[at];
        merge->heap[at] = merge->heap[least];
        merge->heap[least] = moved;
        at = least;
    }
}

static int sorter_open_runs(merge_t *merge)
{
    const gp_sorter_t *sorter = merge->sorter;
    for (size_t i = 0; i <= sorter->run_count; i++) {
        run_t *run = &merge->runs[i];
        run->number = i;
        if (i == sorter->run_count) { // records in memory
            run->next = sorter->count > 0 ? sorter->records : NULL;
            run->buffered = sorter->count;
        } else {
            run->at = i * (uint64_t)sorter->run_records;
            run->left = sorter->run_records;
            run->buffer = malloc(BUFFER_BYTES);
            // -Wanalyzer-malloc-leak: run is one of merge->runs, the buffers of which gp_sorter_each() frees.
            int result = run->buffer != NULL ? sorter_refill(merge, run) : -ENOMEM;
            if (result < 0)
                return result;
        }
        if (run->next != NULL)
            merge->heap[merge->count++] = run;
    }
    for (size_t i = merge->count / 2; i > 0; i--)
        sorter_sift_down(merge, i - 1);
    return 0;
}

static int sorter_hand_out(merge_t *merge, int (*take)(void *, const void *), void *context)
{
    int result = 0;
    while (merge->count > 0 && result == 0) {
        run_t *run = merge->heap[0];
        result = take(context, run->next);
        run->next += merge->sorter->record_bytes;
        if (--run->buffered == 0 && result == 0)
            result = sorter_refill(merge, run);
        if (run->next == NULL)
            merge->heap[0] = merge->heap[--merge->count];
        sorter_sift_down(merge, 0);
    }
    return result;
}

int gp_sorter_each(const gp_sorter_t *sorter, int (*take)(void *context, const void *record), void *context)
{
    merge_t merge = {
        .sorter = sorter,
        .runs = calloc(sorter->run_count + 1, sizeof(*merge.runs)),
        .heap = calloc(sorter->run_count + 1, sizeof(*merge.heap)),
    };
    int result = merge.runs != NULL && merge.heap != NULL ? sorter_open_runs(&merge) : -ENOMEM;
    if (result == 0)
        result = sorter_hand_out(&merge, take, context);
    for (size_t i = 0; i < sorter->run_count && merge.runs != NULL; i++)
        free(merge.runs[i].buffer);
    free(merge.runs);
    // -Wanalyzer-malloc-leak: all buffers have been freed.
    free(merge.heap);
    return result;
}

void gp_sorter_free(gp_sorter_t *sorter)
{
    free(sorter->records);
    if (sorter->record_bytes > 0 && sorter->fd >= 0)
        close(sorter->fd);
    *sorter = (gp_sorter_t){0};
}
