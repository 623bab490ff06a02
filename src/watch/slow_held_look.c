// SPDX-License-Identifier: MIT
// Reading who has which thread.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/kinds.h"
#include "watch/slow_held_private.h"

enum { TIDY_MIN = 1024 };

typedef struct looking {
    gp_slow_held_t *held;
    gp_held_process_t *process; // NULL: the header has not come
} looking_t;

static uint64_t at(gp_held_process_t *process, uint64_t time_ns)
{
    uint64_t ns = process->header.start_monotonic_ns + time_ns;
    process->now_ns = ns > process->now_ns ? ns : process->now_ns;
    return ns;
}

// --- processes

static void forget_part(gp_held_process_t *process)
{
    for (size_t i = 0; i < process->module_count; i++)
        free(process->modules[i].path);
    process->module_count = process->leaf_count = 0;
}

// What ended a part ended its coroutines' records at one moment: those are alive.
static void turn(gp_held_process_t *process, const gp_file_header_t *header)
{
    uint64_t last_ns = 0;
    for (size_t i = 0; i < process->coro_count; i++)
        last_ns = process->coros[i].over_ns > last_ns ? process->coros[i].over_ns : last_ns;
    for (size_t i = 0; i < process->coro_count; i++)
        if (process->coros[i].over_ns == last_ns)
            process->coros[i].over_ns = 0;
    forget_part(process);
    process->header = *header;
    process->goes_on = false;
}

static int take_header(void *context, const gp_file_header_t *header)
{
    looking_t *looking = context;
    gp_slow_held_t *held = looking->held;
    for (size_t i = 0; i < held->count; i++) {
        gp_held_process_t *process = held->processes[i];
        if (process->header.pid != header->pid ||
            memcmp(process->header.session, header->session, sizeof(header->session)) != 0)
            continue;
        if (process->header.start_realtime_ns != header->start_realtime_ns)
            turn(process, header);
        looking->process = process;
        return 0;
    }
    if (gp_grow(&held->processes, &held->capacity, held->count, sizeof(*held->processes)) < 0 ||
        (looking->process = calloc(1, sizeof(*looking->process))) == NULL)
        return -ENOMEM;
    looking->process->header = *header;
    held->processes[held->count++] = looking->process;
    return 0;
}

static void free_process(gp_held_process_t *process)
{
    forget_part(process);
    free(process->coros);
    free(process->threads);
    free(process->modules);
    free(process->leaves);
    gp_index_free(&process->coro_index);
    free(process);
}

void gp_slow_held_leave(gp_slow_held_t *held, gp_held_process_t *process)
{
    for (size_t i = 0; i < held->count && process != NULL && !process->goes_on; i++)
        if (held->processes[i] == process) {
            held->processes[i] = held->processes[--held->count];
            free_process(process);
            return;
        }
}

void gp_slow_held_free(gp_slow_held_t *held)
{
    for (size_t i = 0; i < held->count; i++)
        free_process(held->processes[i]);
    free(held->processes);
    *held = (gp_slow_held_t){0};
}

// --- coroutines and threads

static bool has_id(const void *owner, uint32_t number, const void *key)
{
    return ((const gp_held_process_t *)owner)->coros[number].id == *(const uint64_t *)key;
}

// NULL: memory is short.
static gp_held_coro_t *coro_of(gp_held_process_t *process, uint64_t id)
{
    uint64_t hash = gp_hash_u64(id);
    uint32_t number = gp_index_find(&process->coro_index, hash, has_id, process, &id);
    if (number != GP_INDEX_NONE)
        return &process->coros[number];
    if (gp_grow(&process->coros, &process->coro_capacity, process->coro_count, sizeof(*process->coros)) < 0 ||
        gp_index_add(&process->coro_index, hash, (uint32_t)process->coro_count) < 0)
        return NULL;
    gp_held_coro_t *coro = &process->coros[process->coro_count++];
    *coro = (gp_held_coro_t){.id = id};
    return coro;
}

static gp_held_thread_t *thread_of(gp_held_process_t *process, uint32_t index)
{
    for (size_t i = 0; i < process->thread_count; i++)
        if (process->threads[i].index == index)
            return &process->threads[i];
    if (gp_grow(&process->threads, &process->thread_capacity, process->thread_count, sizeof(*process->threads)) < 0)
        return NULL;
    process->threads[process->thread_count] = (gp_held_thread_t){.index = index};
    return &process->threads[process->thread_count++];
}

// Those that are over are kept until they are most of the table.
static int tidy(gp_held_process_t *process)
{
    size_t alive = 0, kept = 0;
    for (size_t i = 0; i < process->coro_count; i++)
        alive += process->coros[i].over_ns == 0;
    if (process->coro_count < TIDY_MIN || alive > process->coro_count / 2 || process->goes_on)
        return 0;
    gp_index_clear(&process->coro_index);
    for (size_t i = 0; i < process->coro_count; i++)
        if (process->coros[i].over_ns == 0) {
            process->coros[kept] = process->coros[i];
            if (gp_index_add(&process->coro_index, gp_hash_u64(process->coros[kept].id), (uint32_t)kept) < 0)
                return -ENOMEM;
            kept++;
        }
    process->coro_count = kept;
    return 0;
}

// --- records

static int take_coro(void *context, const gp_coro_record_t *record)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    gp_held_coro_t *coro = coro_of(process, record->id);
    if (coro == NULL)
        return -ENOMEM;
    coro->kind = record->kind;
    memcpy(coro->name, record->name, sizeof(coro->name));
    coro->name[sizeof(coro->name) - 1] = '\0';
    return 0;
}

static int take_module(void *context, const gp_module_record_t *record, const char *path, size_t path_len)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    gp_held_module_t module = {.id = record->id, .path = strndup(path, path_len)};
    module.build_id_len = record->build_id_len < sizeof(module.build_id) ? (uint8_t)record->build_id_len
                                                                         : (uint8_t)sizeof(module.build_id);
    memcpy(module.build_id, record->build_id, sizeof(module.build_id));
    if (module.path == NULL ||
        gp_grow(&process->modules, &process->module_capacity, process->module_count, sizeof(module)) < 0) {
        free(module.path);
        return -ENOMEM;
    }
    process->modules[process->module_count++] = module;
    return 0; // -Wanalyzer-malloc-leak: the table keeps the path
}

static int take_stack(void *context, const gp_stack_record_t *stack, const gp_loc_t *frames)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    if (stack->id < process->leaf_count ||
        stack->id > process->leaf_count + (1u << 24)) // a damaged one says any number
        return 0;
    if (gp_reserve(&process->leaves, &process->leaf_capacity, (size_t)stack->id + 1, sizeof(*process->leaves)) < 0)
        return -ENOMEM;
    while (process->leaf_count <= stack->id)
        process->leaves[process->leaf_count++] = (gp_held_leaf_t){{0}};
    for (size_t i = 0; i < stack->depth && i < GP_HELD_LEAF_FRAMES; i++)
        process->leaves[stack->id].frames[i] = frames[i];
    return 0;
}

static void take_sample(gp_held_process_t *process, const gp_sample_record_t *sample, gp_held_coro_t *coro)
{
    uint64_t time_ns = at(process, sample->time_ns);
    coro->thread = sample->thread;
    coro->trace = sample->trace;
    coro->over_ns = 0;
    if (time_ns <= coro->since_ns)
        return;
    coro->last_ns = time_ns > coro->last_ns ? time_ns : coro->last_ns;
    if (sample->kind == GP_KIND_BLOCKED) {
        coro->blocked_ns += sample->weight_ns;
        coro->leaf = sample->stack_id < process->leaf_count ? process->leaves[sample->stack_id] : (gp_held_leaf_t){{0}};
    } else {
        coro->cpu_ns += sample->weight_ns;
    }
}

static int take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    for (size_t i = 0; i < count; i++) {
        uint32_t kind = samples[i].kind;
        if (samples[i].thread == 0 || (kind != GP_KIND_CPU && kind != GP_KIND_PREEMPTED && kind != GP_KIND_BLOCKED))
            continue;
        gp_held_coro_t *coro = coro_of(process, samples[i].coro_id);
        if (coro == NULL)
            return -ENOMEM;
        take_sample(process, &samples[i], coro);
    }
    return 0;
}

static int take_ledger(void *context, const gp_ledger_record_t *record)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    uint64_t time_ns = at(process, record->time_ns);
    gp_held_coro_t *coro = coro_of(process, record->coro_id);
    if (coro == NULL)
        return -ENOMEM;
    gp_held_thread_t *thread = coro->thread != 0 ? thread_of(process, coro->thread) : NULL;
    if (thread != NULL)
        thread->switches += record->switches;
    coro->switches += record->switches;
    if (record->switches > 0) { // some time before: perhaps right before
        coro->since_ns = coro->last_ns = time_ns;
        coro->cpu_ns = coro->blocked_ns = 0;
        coro->is_told = false;
    } else if (record->longest_ns > coro->longest_ns && coro->longest_ns > 0 && record->longest_ns < time_ns) {
        uint64_t since_ns = time_ns - record->longest_ns; // it is the present slice that grows
        coro->since_ns = since_ns < coro->since_ns ? since_ns : coro->since_ns;
    }
    coro->longest_ns = record->longest_ns;
    return 0;
}

static int take_activity(void *context, const gp_activity_record_t *activity)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    gp_held_coro_t *coro = coro_of(process, activity->coro_id), *waker = NULL;
    uint64_t end_ns = at(process, activity->end_ns);
    if (coro == NULL)
        return -ENOMEM;
    coro->thread = activity->thread != 0 ? activity->thread : coro->thread;
    coro->over_ns = activity->is_open ? end_ns : 0;
    gp_held_thread_t *thread = coro->thread != 0 ? thread_of(process, coro->thread) : NULL;
    if (activity->waker_id == 0 || activity->waker_id == activity->coro_id || thread == NULL)
        return 0;
    thread->wakes++;
    if ((waker = coro_of(process, activity->waker_id)) == NULL)
        return -ENOMEM;
    waker->wakes++;
    return 0;
}

static int take_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    (void)values;
    at(((looking_t *)context)->process, record->time_ns);
    return 0;
}

static int take_end(void *context, const gp_end_record_t *end)
{
    ((looking_t *)context)->process->goes_on = end->reason == GP_END_TURNED;
    return 0;
}

int gp_slow_held_look(gp_slow_held_t *held, int fd, gp_reader_part_t *part, gp_held_process_t **process,
                      char error[GP_READER_ERROR_SIZE])
{
    static const gp_reader_handlers_t handlers = {
        .header = take_header,
        .coro = take_coro,
        .module = take_module,
        .stack = take_stack,
        .samples = take_samples,
        .ledger = take_ledger,
        .activity = take_activity,
        .counters = take_counters,
        .end = take_end,
    };
    looking_t looking = {.held = held};
    gp_reader_summary_t summary;
    part->from = part->to;
    int result = gp_reader_read_part(fd, part, &handlers, &looking, &summary, error);
    *process = looking.process;
    if (result == 0 && looking.process != NULL && (result = tidy(looking.process)) < 0)
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    return result;
}
