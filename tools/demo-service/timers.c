// SPDX-License-Identifier: MIT
#include "timers.h"

#include <errno.h>
#include <stdlib.h>

static void put(timers_t *timers, size_t index, coroutine_t *co)
{
    timers->heap[index] = co;
    co->wait.timer_index = index;
}

static bool earlier(const coroutine_t *a, const coroutine_t *b)
{
    return a->wait.deadline_ms < b->wait.deadline_ms;
}

static void sift_up(timers_t *timers, size_t index, coroutine_t *co)
{
    while (index > 0 && earlier(co, timers->heap[(index - 1) / 2])) {
        put(timers, index, timers->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(timers, index, co);
}

static void sift_down(timers_t *timers, size_t index, coroutine_t *co)
{
    for (;;) {
        size_t child = 2 * index + 1;
        if (child + 1 < timers->count && earlier(timers->heap[child + 1], timers->heap[child]))
            child++;
        if (child >= timers->count || !earlier(timers->heap[child], co))
            break;
        put(timers, index, timers->heap[child]);
        index = child;
    }
    put(timers, index, co);
}

static int reserve(timers_t *timers)
{
    if (timers->count < timers->capacity)
        return 0;
    size_t capacity = timers->capacity ? 2 * timers->capacity : 64;
    coroutine_t **heap = realloc(timers->heap, capacity * sizeof *heap);
    if (heap == NULL)
        return -ENOMEM;
    timers->heap = heap;
    timers->capacity = capacity;
    return 0;
}

int timers_add(timers_t *timers, coroutine_t *co)
{
    int rc = reserve(timers);
    if (rc == 0)
        sift_up(timers, timers->count++, co);
    return rc;
}

void timers_remove(timers_t *timers, coroutine_t *co)
{
    size_t index = co->wait.timer_index;
    coroutine_t *last = timers->heap[--timers->count];
    if (last == co)
        return;
    if (index > 0 && earlier(last, timers->heap[(index - 1) / 2]))
        sift_up(timers, index, last);
    else
        sift_down(timers, index, last);
}

coroutine_t *timers_first(const timers_t *timers)
{
    return timers->count > 0 ? timers->heap[0] : NULL;
}

void timers_free(timers_t *timers)
{
    free(timers->heap);
    *timers = (timers_t){0};
}
