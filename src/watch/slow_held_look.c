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

static uint64_t slow_held_look_at(gp_held_process_t *process, uint64_t time_ns)
{
    uint64_t ns = process->facts.header.start_monotonic_ns + time_ns;
    process->now_ns = ns > process->now_ns ? ns : process->now_ns;
    return ns;
}

// --- processes

static int slow_held_look_begin_part(gp_held_process_t *process, const gp_file_header_t *header)
{
    gp_facts_free(&process->facts);
    int result = gp_facts_init(&process->facts, true);
    process->facts.frames_most = GP_HELD_LEAF_FRAMES;
    process->facts.header = *header;
    process->goes_on = false;
    return result;
}

// Begin the next part. Coroutines whose records ended with the part before, all at one moment, are alive.
static int slow_held_look_turn(gp_held_process_t *process, const gp_file_header_t *header)
{
    uint64_t last_ns = 0;
    for (size_t i = 0; i < process->coros.count; i++)
        last_ns = process->coros.items[i].over_ns > last_ns ? process->coros.items[i].over_ns : last_ns;
    for (size_t i = 0; i < process->coros.count; i++)
        if (process->coros.items[i].over_ns == last_ns)
            process->coros.items[i].over_ns = 0;
    return slow_held_look_begin_part(process, header);
}

static int slow_held_look_take_header(void *context, const gp_file_header_t *header)
{
    looking_t *looking = context;
    gp_slow_held_t *held = looking->held;
    for (size_t i = 0; i < held->count; i++) {
        gp_held_process_t *process = held->processes[i];
        if (process->facts.header.pid != header->pid ||
            memcmp(process->facts.header.session, header->session, sizeof(header->session)) != 0)
            continue;
        looking->process = process;
        bool is_another = process->facts.header.start_realtime_ns != header->start_realtime_ns;
        return is_another ? slow_held_look_turn(process, header) : 0;
    }
    if (gp_grow(&held->processes, &held->capacity, held->count, sizeof(*held->processes)) < 0 ||
        (looking->process = calloc(1, sizeof(*looking->process))) == NULL)
        return -ENOMEM;
    *looking->process =
        (gp_held_process_t){.coros = GP_TABLE_BY(gp_held_coro_t, id), .threads = GP_TABLE_BY(gp_held_thread_t, index)};
    held->processes[held->count++] = looking->process;
    return slow_held_look_begin_part(looking->process, header);
}

static void slow_held_look_free_process(gp_held_process_t *process)
{
    gp_facts_free(&process->facts);
    gp_table_free(&process->coros.table);
    gp_table_free(&process->threads.table);
    free(process);
}

void gp_slow_held_leave(gp_slow_held_t *held, gp_held_process_t *process)
{
    for (size_t i = 0; i < held->count && process != NULL && !process->goes_on; i++)
        if (held->processes[i] == process) {
            held->processes[i] = held->processes[--held->count];
            slow_held_look_free_process(process);
            return;
        }
}

void gp_slow_held_free(gp_slow_held_t *held)
{
    for (size_t i = 0; i < held->count; i++)
        slow_held_look_free_process(held->processes[i]);
    free(held->processes);
    *held = (gp_slow_held_t){0};
}

// --- coroutines and threads

// NULL: memory is short.
static gp_held_coro_t *slow_held_look_coro_of(gp_held_process_t *process, uint64_t id)
{
    uint32_t number = gp_table_need(&process->coros.table, id);
    return number != GP_INDEX_NONE ? &process->coros.items[number] : NULL;
}

static gp_held_thread_t *slow_held_look_thread_of(gp_held_process_t *process, uint32_t index)
{
    uint32_t number = gp_table_need(&process->threads.table, index);
    return number != GP_INDEX_NONE ? &process->threads.items[number] : NULL;
}

// Coroutines that are over are kept until they are most of the table.
static int slow_held_look_tidy(gp_held_process_t *process)
{
    size_t alive = 0, kept = 0, count = process->coros.count;
    for (size_t i = 0; i < count; i++)
        alive += process->coros.items[i].over_ns == 0;
    if (count < TIDY_MIN || alive > count / 2 || process->goes_on)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (process->coros.items[i].over_ns == 0)
            process->coros.items[kept++] = process->coros.items[i];
    process->coros.count = kept;
    return gp_table_index(&process->coros.table);
}

// --- records

static int slow_held_look_take_coro(void *context, const gp_coro_record_t *record)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    gp_held_coro_t *coro = slow_held_look_coro_of(process, record->id);
    if (coro == NULL)
        return -ENOMEM;
    coro->kind = record->kind;
    memcpy(coro->name, record->name, sizeof(coro->name));
    coro->name[sizeof(coro->name) - 1] = '\0';
    return 0;
}

static int slow_held_look_take_module(void *context, const gp_module_record_t *record, const char *path,
                                      size_t path_len)
{
    return gp_facts_handlers.module(&((looking_t *)context)->process->facts, record, path, path_len);
}

static int slow_held_look_take_stack(void *context, const gp_stack_record_t *stack, const gp_loc_t *frames)
{
    return gp_facts_handlers.stack(&((looking_t *)context)->process->facts, stack, frames);
}

// The innermost frames of a stack.
static gp_held_leaf_t slow_held_look_leaf_of(const gp_facts_t *facts, uint32_t stack_id)
{
    uint32_t number = gp_table_find(&facts->stacks.table, stack_id);
    gp_held_leaf_t leaf = {{0}};
    for (size_t i = 0; number != GP_INDEX_NONE && i < facts->stacks.items[number].depth; i++)
        leaf.frames[i] = facts->stacks.items[number].frames[i];
    return leaf;
}

static void slow_held_look_take_sample(gp_held_process_t *process, const gp_sample_record_t *sample,
                                       gp_held_coro_t *coro)
{
    uint64_t time_ns = slow_held_look_at(process, sample->time_ns);
    coro->thread = sample->thread;
    coro->trace = sample->trace;
    coro->over_ns = 0;
    if (time_ns <= coro->since_ns)
        return;
    coro->last_ns = time_ns > coro->last_ns ? time_ns : coro->last_ns;
    if (sample->kind == GP_KIND_BLOCKED) {
        coro->blocked_ns += sample->weight_ns;
        coro->leaf = slow_held_look_leaf_of(&process->facts, sample->stack_id);
    } else {
        coro->cpu_ns += sample->weight_ns;
    }
}

static int slow_held_look_take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    for (size_t i = 0; i < count; i++) {
        uint32_t kind = samples[i].kind;
        if (samples[i].thread == 0 || (kind != GP_KIND_CPU && kind != GP_KIND_PREEMPTED && kind != GP_KIND_BLOCKED))
            continue;
        gp_held_coro_t *coro = slow_held_look_coro_of(process, samples[i].coro_id);
        if (coro == NULL)
            return -ENOMEM;
        slow_held_look_take_sample(process, &samples[i], coro);
    }
    return 0;
}

static int slow_held_look_take_ledger(void *context, const gp_ledger_record_t *record)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    uint64_t time_ns = slow_held_look_at(process, record->time_ns);
    gp_held_coro_t *coro = slow_held_look_coro_of(process, record->coro_id);
    if (coro == NULL)
        return -ENOMEM;
    gp_held_thread_t *thread = coro->thread != 0 ? slow_held_look_thread_of(process, coro->thread) : NULL;
    if (thread != NULL)
        thread->switches += record->switches;
    coro->switches += record->switches;
    if (record->switches > 0) { // some time before: perhaps right before
        coro->since_ns = coro->last_ns = time_ns;
        coro->cpu_ns = coro->blocked_ns = 0;
        coro->is_told = false;
    } else if (record->longest_ns > coro->longest_ns && coro->longest_ns > 0 && record->longest_ns < time_ns) {
        uint64_t since_ns = time_ns - record->longest_ns; // the present slice grows
        coro->since_ns = since_ns < coro->since_ns ? since_ns : coro->since_ns;
    }
    coro->longest_ns = record->longest_ns;
    return 0;
}

static int slow_held_look_take_activity(void *context, const gp_activity_record_t *activity)
{
    gp_held_process_t *process = ((looking_t *)context)->process;
    gp_held_coro_t *coro = slow_held_look_coro_of(process, activity->coro_id), *waker = NULL;
    uint64_t end_ns = slow_held_look_at(process, activity->end_ns);
    if (coro == NULL)
        return -ENOMEM;
    coro->thread = activity->thread != 0 ? activity->thread : coro->thread;
    coro->over_ns = activity->is_open ? end_ns : 0;
    gp_held_thread_t *thread = coro->thread != 0 ? slow_held_look_thread_of(process, coro->thread) : NULL;
    if (activity->waker_id == 0 || activity->waker_id == activity->coro_id || thread == NULL)
        return 0;
    thread->wakes++;
    if ((waker = slow_held_look_coro_of(process, activity->waker_id)) == NULL)
        return -ENOMEM;
    waker->wakes++;
    return 0;
}

static int slow_held_look_take_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    (void)values;
    slow_held_look_at(((looking_t *)context)->process, record->time_ns);
    return 0;
}

static int slow_held_look_take_end(void *context, const gp_end_record_t *end)
{
    ((looking_t *)context)->process->goes_on = end->reason == GP_END_TURNED;
    return 0;
}

int gp_slow_held_look(gp_slow_held_t *held, int fd, gp_reader_part_t *part, gp_held_process_t **process,
                      char error[GP_READER_ERROR_SIZE])
{
    static const gp_reader_handlers_t handlers = {
        .header = slow_held_look_take_header,
        .coro = slow_held_look_take_coro,
        .module = slow_held_look_take_module,
        .stack = slow_held_look_take_stack,
        .samples = slow_held_look_take_samples,
        .ledger = slow_held_look_take_ledger,
        .activity = slow_held_look_take_activity,
        .counters = slow_held_look_take_counters,
        .end = slow_held_look_take_end,
    };
    looking_t looking = {.held = held};
    gp_reader_summary_t summary;
    part->from = part->to;
    int result = gp_reader_read_part(fd, part, &handlers, &looking, &summary, error);
    *process = looking.process;
    if (result == 0 && looking.process != NULL && (result = slow_held_look_tidy(looking.process)) < 0)
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    return result;
}
