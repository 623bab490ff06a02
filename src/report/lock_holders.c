// SPDX-License-Identifier: MIT
// Threads by name: the holder that "[held by NAME]" stands for.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lock_waits.h"

enum { NAMES_MOST = 4 }; // of one thread

typedef struct gp_lock_holder_name {
    uint64_t hash, start_ns, end_ns; // end_ns: UINT64_MAX = it lives
    uint32_t coro;
} gp_lock_holder_name_t;

static int lock_holders_by_name(const void *left, const void *right)
{
    const gp_lock_holder_name_t *a = left, *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

// Each name once: a thread that has one twice would be two.
static void lock_holders_add(gp_lock_holders_t *holders, size_t first, const gp_lock_holder_name_t *thread,
                             const char *text)
{
    gp_lock_holder_name_t name = *thread;
    name.hash = gp_hash_bytes(text, strlen(text));
    for (size_t i = first; i < holders->count; i++)
        if (holders->items[i].hash == name.hash)
            return;
    if (text[0] != '\0')
        holders->items[holders->count++] = name;
}

static void lock_holders_take(gp_lock_holders_t *holders, const gp_thread_record_t *thread)
{
    char number[32];
    const gp_dataset_t *dataset = holders->dataset;
    uint32_t coro = gp_dataset_coro_find(dataset, thread->coro_id);
    const char *own = coro != GP_INDEX_NONE ? dataset->facts.coros.items[coro].record.name : "";
    gp_lock_holder_name_t name = {
        .start_ns = thread->start_ns, .end_ns = thread->end_ns != 0 ? thread->end_ns : UINT64_MAX, .coro = coro};
    size_t first = holders->count;
    snprintf(number, sizeof(number), "thread %u", thread->tid);
    lock_holders_add(holders, first, &name, own);
    lock_holders_add(holders, first, &name, number);
    if (own[0] == '\0')
        lock_holders_add(holders, first, &name, thread->name);
    if (own[0] == '\0' && thread->tid == dataset->facts.header.pid)
        lock_holders_add(holders, first, &name, "MainThread");
}

int gp_lock_holders_make(gp_lock_holders_t *holders, const gp_dataset_t *dataset)
{
    *holders = (gp_lock_holders_t){.dataset = dataset};
    holders->items = calloc(dataset->facts.threads.count * NAMES_MOST + 1, sizeof(*holders->items));
    if (holders->items == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->facts.threads.count; i++)
        lock_holders_take(holders, &dataset->facts.threads.items[i]);
    qsort(holders->items, holders->count, sizeof(*holders->items), lock_holders_by_name);
    return 0;
}

void gp_lock_holders_free(gp_lock_holders_t *holders)
{
    free(holders->items);
}

uint32_t gp_lock_holder(const gp_lock_holders_t *holders, const char *name, uint64_t at_ns)
{
    uint32_t found = GP_INDEX_NONE;
    size_t front = strlen("[held by "), length = strlen(name), lo = 0, hi = holders->count;
    if (length <= front + 1)
        return GP_INDEX_NONE;
    uint64_t hash = gp_hash_bytes(name + front, length - front - 1);
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (holders->items[middle].hash < hash)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < holders->count && holders->items[lo].hash == hash && holders->items[lo].start_ns <= at_ns; lo++) {
        if (holders->items[lo].end_ns < at_ns)
            continue;
        if (found != GP_INDEX_NONE)
            return GP_INDEX_NONE;
        found = holders->items[lo].coro;
    }
    return found;
}
