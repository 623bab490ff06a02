// SPDX-License-Identifier: MIT
// Coroutines that migrate among four threads, each with a profile of its own, and one of the process over all.
#include <pthread.h>
#include <sched.h>

#include <greenprof/prof.h>

#include "calls.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static coro_t *queue, **queue_end = &queue;
static int unfinished;
static prof_t **own_profiles;
static truth_table_t *own_tables;

PLAIN static void crowd_entry(unsigned hi, unsigned lo)
{
    coro_t *self = (coro_t *)((uintptr_t)hi << 32 | lo);
    prof_options_t options = PROF_OPTIONS_INIT;
    size_t number = (size_t)self->truth.base[0];
    options.mode = PROF_MODE_EXACT;
    truth_cover(&self->truth, 0, &own_tables[number]);
    own_profiles[number] = prof_start(&options);
    if (own_profiles[number] == NULL)
        abort();
    yield(self); // all of them start before the first one ends
    run_tree(self);
    prof_stop(own_profiles[number]);
    self->over = true;
    for (;;)
        yield(self);
}

PLAIN static void put(coro_t *coro)
{
    coro->next = NULL;
    *queue_end = coro;
    queue_end = &coro->next;
}

PLAIN static void *work(void *unused)
{
    ucontext_t own;
    (void)unused;
    pthread_mutex_lock(&lock);
    while (unfinished > 0) {
        coro_t *coro = queue;
        if (coro == NULL) {
            pthread_mutex_unlock(&lock);
            sched_yield();
            pthread_mutex_lock(&lock);
            continue;
        }
        queue = coro->next;
        if (queue == NULL)
            queue_end = &queue;
        pthread_mutex_unlock(&lock);
        coro->back = &own;
        swapcontext(&own, &coro->context);
        pthread_mutex_lock(&lock);
        if (coro->over)
            unfinished--;
        else
            put(coro);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

PLAIN static void finish_crowd(int count, prof_t *all)
{
    char name[64];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "own%d.prof", i);
        if (prof_dump_stats(own_profiles[i], name) != 0)
            abort();
        truth_print(truth_file, name, &own_tables[i]);
        prof_free(own_profiles[i]);
        for (int caller = 0; caller <= NO_CALLER; caller++) {
            for (int callee = 0; callee < FUNCTIONS; callee++) {
                truth_count_t *sum = &whole.edges[caller][callee], *count_of = &own_tables[i].edges[caller][callee];
                sum->calls += count_of->calls;
                sum->nested += count_of->nested;
                sum->same_edge += count_of->same_edge;
            }
        }
    }
    if (prof_stop(all) != 0 || prof_dump_stats(all, "all.prof") != 0)
        abort();
    truth_print(truth_file, "all.prof", &whole);
    prof_free(all);
}

PLAIN void crowd(int count, uint64_t seed)
{
    pthread_t threads[3];
    prof_options_t options = PROF_OPTIONS_INIT;
    options.mode = PROF_MODE_EXACT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *all = prof_start(&options);
    own_profiles = (prof_t **)calloc((size_t)count, sizeof(*own_profiles));
    own_tables = (truth_table_t *)calloc((size_t)count, sizeof(*own_tables));
    unfinished = count;
    for (int i = 0; i < count; i++) {
        coro_t *coro = new_coro(seed * 1000 + (uint64_t)i, 150, crowd_entry);
        coro->truth.base[0] = i;
        put(coro);
    }
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    work(NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    finish_crowd(count, all);
}
