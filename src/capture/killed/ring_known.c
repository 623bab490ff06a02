// SPDX-License-Identifier: MIT
#include "capture/killed/ring_known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static bool has_coro(const void *owner, uint32_t number, const void *key)
{
    const gp_ring_known_t *known = owner;
    return known->coros[number].id == *(const uint64_t *)key;
}

static bool has_trace(const void *owner, uint32_t number, const void *key)
{
    const gp_ring_known_t *known = owner;
    return memcmp(known->traces[number].id, key, sizeof(known->traces[number].id)) == 0;
}

static bool has_thread(const void *owner, uint32_t number, const void *key)
{
    const gp_ring_known_t *known = owner;
    return known->threads[number].record.index == *(const uint32_t *)key;
}

static gp_ring_known_coro_t *find_coro(const gp_ring_known_t *known, uint64_t id)
{
    uint32_t number = gp_index_find(&known->by_coro, gp_hash_u64(id), has_coro, known, &id);
    return number != GP_INDEX_NONE ? &known->coros[number] : NULL;
}

static gp_ring_known_trace_t *find_trace(const gp_ring_known_t *known, const uint64_t id[2])
{
    uint32_t number = gp_index_find(&known->by_trace, gp_hash_more(id[0], id[1]), has_trace, known, id);
    return number != GP_INDEX_NONE ? &known->traces[number] : NULL;
}

static gp_ring_known_thread_t *find_thread(const gp_ring_known_t *known, uint32_t index)
{
    uint32_t number = gp_index_find(&known->by_thread, gp_hash_u64(index), has_thread, known, &index);
    return number != GP_INDEX_NONE ? &known->threads[number] : NULL;
}

gp_ring_known_coro_t *gp_ring_known_need_coro(gp_ring_known_t *known, uint64_t id)
{
    gp_ring_known_coro_t *coro = find_coro(known, id);
    if (coro != NULL)
        return coro;
    if (gp_grow(&known->coros, &known->coro_room, known->coro_count, sizeof(*coro)) != 0 ||
        gp_index_add(&known->by_coro, gp_hash_u64(id), (uint32_t)known->coro_count) != 0)
        return NULL;
    coro = &known->coros[known->coro_count++];
    *coro = (gp_ring_known_coro_t){.id = id};
    return coro;
}

gp_ring_known_trace_t *gp_ring_known_need_trace(gp_ring_known_t *known, const uint64_t id[2])
{
    gp_ring_known_trace_t *trace = find_trace(known, id);
    if (trace != NULL)
        return trace;
    if (gp_grow(&known->traces, &known->trace_room, known->trace_count, sizeof(*trace)) != 0 ||
        gp_index_add(&known->by_trace, gp_hash_more(id[0], id[1]), (uint32_t)known->trace_count) != 0)
        return NULL;
    trace = &known->traces[known->trace_count++];
    *trace = (gp_ring_known_trace_t){.id = {id[0], id[1]}};
    return trace;
}

gp_ring_known_thread_t *gp_ring_known_need_thread(gp_ring_known_t *known, uint32_t index)
{
    gp_ring_known_thread_t *thread = find_thread(known, index);
    if (thread != NULL)
        return thread;
    if (gp_grow(&known->threads, &known->thread_room, known->thread_count, sizeof(*thread)) != 0 ||
        gp_index_add(&known->by_thread, gp_hash_u64(index), (uint32_t)known->thread_count) != 0)
        return NULL;
    thread = &known->threads[known->thread_count++];
    *thread = (gp_ring_known_thread_t){.record = {.index = index}};
    return thread;
}

static int take_chunk(void *context, const gp_chunk_header_t *chunk)
{
    gp_ring_known_t *known = context;
    if (chunk->sequence >= known->first_sequence && chunk->type < GP_CHUNK_TYPES)
        known->has[chunk->type] = true;
    return 0;
}

static bool is_own(const char *path, size_t len)
{
    const char *slash = memrchr(path, '/', len), *base = slash != NULL ? slash + 1 : path;
    size_t base_len = len - (size_t)(base - path);
    return (base_len >= 15 && memcmp(base, "libgreenprof.so", 15) == 0) ||
           (base_len >= 20 && memcmp(base, "libgreenprof-core.so", 20) == 0);
}

// One that comes again, as it was loaded at another place, replaces the former one.
static int take_module(void *context, const gp_module_record_t *record, const char *path, size_t path_len)
{
    gp_ring_known_t *known = context;
    size_t at = 0;
    while (at < known->module_count && known->modules[at].record.id != record->id)
        at++;
    if (at == known->module_count) {
        if (gp_grow(&known->modules, &known->module_room, known->module_count, sizeof(*known->modules)) != 0)
            return -ENOMEM;
        known->module_count++;
    }
    known->modules[at] = (gp_ring_known_module_t){.record = *record, .is_own = is_own(path, path_len)};
    return 0;
}

static int take_thread(void *context, const gp_thread_record_t *record)
{
    gp_ring_known_thread_t *thread = find_thread(context, record->index);
    if (thread != NULL)
        *thread = (gp_ring_known_thread_t){.record = *record, .is_there = true};
    return 0;
}

static int take_coro(void *context, const gp_coro_record_t *record)
{
    gp_ring_known_coro_t *coro = find_coro(context, record->id);
    if (coro != NULL)
        coro->is_there = true;
    return 0;
}

static int take_trace(void *context, const gp_trace_record_t *record)
{
    gp_ring_known_t *known = context;
    uint64_t id[2];
    memcpy(id, record->id, sizeof(id));
    gp_ring_known_trace_t *trace = find_trace(known, id);
    if (trace != NULL)
        trace->number = record->index;
    known->last_trace = record->index > known->last_trace ? record->index : known->last_trace;
    return 0;
}

static int take_stack(void *context, const gp_stack_record_t *record, const gp_loc_t *frames)
{
    (void)frames;
    gp_ring_known_t *known = context;
    known->last_stack = record->id > known->last_stack ? record->id : known->last_stack;
    return 0;
}

static int take_function(void *context, const gp_function_record_t *record, const char *name, const char *file)
{
    (void)name, (void)file;
    gp_ring_known_t *known = context;
    known->last_function = record->number > known->last_function ? record->number : known->last_function;
    return 0;
}

static int take_ledger(void *context, const gp_ledger_record_t *record)
{
    gp_ring_known_coro_t *coro = find_coro(context, record->coro_id);
    if (coro != NULL && record->time_ns > coro->ledger_ns)
        coro->ledger_ns = record->time_ns;
    return 0;
}

static int take_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    gp_ring_known_t *known = context;
    size_t bytes = record->count * sizeof(*values);
    gp_counters_record_t *copy = malloc(sizeof(*record) + bytes);
    if (copy == NULL)
        return -ENOMEM;
    *copy = *record;
    memcpy(copy + 1, values, bytes);
    free(known->counters);
    known->counters = copy;
    return 0;
}

int gp_ring_known_read(gp_ring_known_t *known, int fd, char error[GP_READER_ERROR_SIZE])
{
    static const gp_reader_handlers_t handlers = {
        .chunk = take_chunk,
        .module = take_module,
        .thread = take_thread,
        .coro = take_coro,
        .trace = take_trace,
        .stack = take_stack,
        .function = take_function,
        .ledger = take_ledger,
        .counters = take_counters,
    };
    gp_reader_summary_t summary;
    if (lseek(fd, 0, SEEK_SET) < 0) {
        int reason = errno;
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(reason));
        return -reason;
    }
    return gp_reader_read(fd, &handlers, known, &summary, error);
}

const gp_ring_known_module_t *gp_ring_known_module_at(const gp_ring_known_t *known, uint64_t pc)
{
    for (size_t i = known->module_count; i-- > 0;) // of one that was unloaded, another one may have the place
        if (pc >= known->modules[i].record.start && pc < known->modules[i].record.end)
            return &known->modules[i];
    return NULL;
}

void gp_ring_known_free(gp_ring_known_t *known)
{
    free(known->coros);
    free(known->traces);
    free(known->threads);
    free(known->modules);
    free(known->counters);
    gp_index_free(&known->by_coro);
    gp_index_free(&known->by_trace);
    gp_index_free(&known->by_thread);
    *known = (gp_ring_known_t){0};
}
