// SPDX-License-Identifier: MIT
#include "capture/killed/ring_known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gp_ring_known_begin(gp_ring_known_t *known)
{
    *known = (gp_ring_known_t){
        .coros = GP_TABLE_BY(gp_ring_known_coro_t, id),
        .traces = GP_TABLE_PLAIN(gp_ring_known_trace_t),
        .threads = GP_TABLE_BY(gp_ring_known_thread_t, record.index),
        .modules = GP_TABLE_BY(gp_ring_known_module_t, record.id),
    };
}

static gp_ring_known_coro_t *ring_known_coro(const gp_ring_known_t *known, uint32_t number)
{
    return number != GP_INDEX_NONE ? &known->coros.items[number] : NULL;
}

static gp_ring_known_thread_t *ring_known_thread(const gp_ring_known_t *known, uint32_t number)
{
    return number != GP_INDEX_NONE ? &known->threads.items[number] : NULL;
}

gp_ring_known_coro_t *gp_ring_known_need_coro(gp_ring_known_t *known, uint64_t id)
{
    return ring_known_coro(known, gp_table_need(&known->coros.table, id));
}

gp_ring_known_thread_t *gp_ring_known_need_thread(gp_ring_known_t *known, uint32_t index)
{
    return ring_known_thread(known, gp_table_need(&known->threads.table, index));
}

static bool ring_known_is_trace(const void *owner, uint32_t number, const void *key)
{
    const gp_ring_known_trace_t *trace = &((const gp_ring_known_t *)owner)->traces.items[number];
    return memcmp(trace->id, key, sizeof(trace->id)) == 0;
}

static uint32_t ring_known_find_trace(const gp_ring_known_t *known, const uint64_t id[2])
{
    return gp_index_find(&known->by_trace, gp_hash_more(id[0], id[1]), ring_known_is_trace, known, id);
}

gp_ring_known_trace_t *gp_ring_known_need_trace(gp_ring_known_t *known, const uint64_t id[2])
{
    uint32_t number = ring_known_find_trace(known, id);
    if (number != GP_INDEX_NONE)
        return &known->traces.items[number];
    number = gp_table_append(&known->traces.table);
    if (number == GP_INDEX_NONE || gp_index_add(&known->by_trace, gp_hash_more(id[0], id[1]), number) != 0)
        return NULL;
    known->traces.items[number] = (gp_ring_known_trace_t){.id = {id[0], id[1]}};
    return &known->traces.items[number];
}

static int ring_known_take_chunk(void *context, const gp_chunk_header_t *chunk)
{
    gp_ring_known_t *known = context;
    if (chunk->sequence >= known->first_sequence && chunk->type < GP_CHUNK_TYPES)
        known->has[chunk->type] = true;
    return 0;
}

static bool ring_known_is_own(const char *path, size_t len)
{
    const char *slash = memrchr(path, '/', len), *base = slash != NULL ? slash + 1 : path;
    size_t base_len = len - (size_t)(base - path);
    return (base_len >= 15 && memcmp(base, "libgreenprof.so", 15) == 0) ||
           (base_len >= 20 && memcmp(base, "libgreenprof-core.so", 20) == 0);
}

// A module that comes again, loaded at another place, replaces the former one.
static int ring_known_take_module(void *context, const gp_module_record_t *record, const char *path, size_t path_len)
{
    gp_ring_known_t *known = context;
    uint32_t number = gp_table_need(&known->modules.table, record->id);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    known->modules.items[number] =
        (gp_ring_known_module_t){.record = *record, .is_own = ring_known_is_own(path, path_len)};
    return 0;
}

static int ring_known_take_thread(void *context, const gp_thread_record_t *record)
{
    const gp_ring_known_t *known = context;
    gp_ring_known_thread_t *thread = ring_known_thread(known, gp_table_find(&known->threads.table, record->index));
    if (thread != NULL)
        *thread = (gp_ring_known_thread_t){.record = *record, .is_there = true};
    return 0;
}

static int ring_known_take_coro(void *context, const gp_coro_record_t *record)
{
    const gp_ring_known_t *known = context;
    gp_ring_known_coro_t *coro = ring_known_coro(known, gp_table_find(&known->coros.table, record->id));
    if (coro != NULL)
        coro->is_there = true;
    return 0;
}

static int ring_known_take_trace(void *context, const gp_trace_record_t *record)
{
    gp_ring_known_t *known = context;
    uint64_t id[2];
    memcpy(id, record->id, sizeof(id));
    uint32_t number = ring_known_find_trace(known, id);
    if (number != GP_INDEX_NONE)
        known->traces.items[number].number = record->index;
    known->last_trace = record->index > known->last_trace ? record->index : known->last_trace;
    return 0;
}

static int ring_known_take_stack(void *context, const gp_stack_record_t *record, const gp_loc_t *frames)
{
    (void)frames;
    gp_ring_known_t *known = context;
    known->last_stack = record->id > known->last_stack ? record->id : known->last_stack;
    return 0;
}

static int ring_known_take_function(void *context, const gp_function_record_t *record, const char *name,
                                    const char *file)
{
    (void)name, (void)file;
    gp_ring_known_t *known = context;
    known->last_function = record->number > known->last_function ? record->number : known->last_function;
    return 0;
}

static int ring_known_take_ledger(void *context, const gp_ledger_record_t *record)
{
    const gp_ring_known_t *known = context;
    gp_ring_known_coro_t *coro = ring_known_coro(known, gp_table_find(&known->coros.table, record->coro_id));
    if (coro != NULL && record->time_ns > coro->ledger_ns)
        coro->ledger_ns = record->time_ns;
    return 0;
}

static int ring_known_take_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
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
        .chunk = ring_known_take_chunk,
        .module = ring_known_take_module,
        .thread = ring_known_take_thread,
        .coro = ring_known_take_coro,
        .trace = ring_known_take_trace,
        .stack = ring_known_take_stack,
        .function = ring_known_take_function,
        .ledger = ring_known_take_ledger,
        .counters = ring_known_take_counters,
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
    for (size_t i = known->modules.count; i-- > 0;) { // a later module may be at an unloaded one's place
        const gp_module_record_t *record = &known->modules.items[i].record;
        if (pc >= record->start && pc < record->end)
            return &known->modules.items[i];
    }
    return NULL;
}

void gp_ring_known_free(gp_ring_known_t *known)
{
    gp_table_free(&known->coros.table);
    gp_table_free(&known->traces.table);
    gp_table_free(&known->threads.table);
    gp_table_free(&known->modules.table);
    gp_index_free(&known->by_trace);
    free(known->counters);
    *known = (gp_ring_known_t){0};
}
