// SPDX-License-Identifier: MIT
#include "report/dataset_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_BYTES = 64 << 20 }; // some 9 million samples

// Each table has an index by the id that records use. One macro for the comparison functions: they differ in type only.
#define SAME_ID(name, table, field, type)                                                                              \
    static bool name(const void *owner, uint32_t number, const void *key)                                              \
    {                                                                                                                  \
        return ((const gp_dataset_t *)owner)->table[number].field == *(const type *)key;                               \
    }

SAME_ID(same_module, modules, id, uint32_t)
SAME_ID(same_function, functions, number, uint32_t)
SAME_ID(same_thread, threads, index, uint32_t)
SAME_ID(same_coro, coros, record.id, uint64_t)
SAME_ID(same_trace, traces, index, uint32_t)
SAME_ID(same_stack, stacks, id, uint32_t)

#define FIND(dataset, index, same, id) gp_index_find(&(dataset)->index, gp_hash_u64(id), same, dataset, &(id))

// Append a zeroed element to a table, unless memory is short or it cannot be found again. Its number, or GP_INDEX_NONE.
#define APPEND(dataset, table, singular, is_indexed)                                                                   \
    (gp_grow(&(dataset)->table, &(dataset)->singular##_capacity, (dataset)->singular##_count,                          \
             sizeof(*(dataset)->table)) < 0 ||                                                                         \
             !(is_indexed)                                                                                             \
         ? GP_INDEX_NONE                                                                                               \
         : (memset(&(dataset)->table[(dataset)->singular##_count], 0, sizeof(*(dataset)->table)),                      \
            (uint32_t)(dataset)->singular##_count++))

// Index the next element under `id`.
#define INDEX(dataset, singular, id)                                                                                   \
    (gp_index_add(&(dataset)->singular##_index, gp_hash_u64(id), (uint32_t)(dataset)->singular##_count) == 0)

#define ADD(dataset, table, singular, id) APPEND(dataset, table, singular, INDEX(dataset, singular, id))

// The same where there is a map: the index has what the map has not.
#define ADD_MAPPED(dataset, table, singular, id)                                                                       \
    APPEND(dataset, table, singular,                                                                                   \
           gp_id_map_add(&(dataset)->singular##_map, id, (uint32_t)(dataset)->singular##_count) ||                     \
               INDEX(dataset, singular, id))

uint32_t gp_dataset_module_find(const gp_dataset_t *dataset, uint32_t id)
{
    return FIND(dataset, module_index, same_module, id);
}

uint32_t gp_dataset_function_find(const gp_dataset_t *dataset, uint32_t number)
{
    return FIND(dataset, function_index, same_function, number);
}

uint32_t gp_dataset_thread_find(const gp_dataset_t *dataset, uint32_t index)
{
    return FIND(dataset, thread_index, same_thread, index);
}

uint32_t gp_dataset_coro_find(const gp_dataset_t *dataset, uint64_t id)
{
    uint32_t number = gp_id_map_find(&dataset->coro_map, id);
    return number != GP_INDEX_NONE ? number : FIND(dataset, coro_index, same_coro, id);
}

uint32_t gp_dataset_trace_find(const gp_dataset_t *dataset, const uint8_t id[16])
{
    for (size_t i = 1; i < dataset->trace_count; i++)
        if (dataset->traces[i].defined && memcmp(dataset->traces[i].id, id, 16) == 0)
            return (uint32_t)i;
    return GP_INDEX_NONE;
}

// Find or add: a record may refer to what was lost, and definitions may come again.
uint32_t gp_dataset_coro_number(gp_dataset_t *dataset, uint64_t id)
{
    uint32_t number = gp_dataset_coro_find(dataset, id);
    if (number != GP_INDEX_NONE)
        return number;
    number = ADD_MAPPED(dataset, coros, coro, id);
    if (number != GP_INDEX_NONE)
        dataset->coros[number].record.id = id;
    return number;
}

uint32_t gp_dataset_trace_index_find(const gp_dataset_t *dataset, uint32_t index)
{
    uint32_t number = gp_id_map_find(&dataset->trace_map, index);
    return number != GP_INDEX_NONE ? number : FIND(dataset, trace_index, same_trace, index);
}

uint32_t gp_dataset_stack_find(const gp_dataset_t *dataset, uint32_t id)
{
    uint32_t number = gp_id_map_find(&dataset->stack_map, id);
    return number != GP_INDEX_NONE ? number : FIND(dataset, stack_index, same_stack, id);
}

uint32_t gp_dataset_trace_number(gp_dataset_t *dataset, uint32_t index)
{
    uint32_t number = gp_dataset_trace_index_find(dataset, index);
    if (number != GP_INDEX_NONE)
        return number;
    number = ADD_MAPPED(dataset, traces, trace, index);
    if (number != GP_INDEX_NONE)
        dataset->traces[number].index = index;
    return number;
}

uint32_t gp_dataset_stack_number(gp_dataset_t *dataset, uint32_t id)
{
    uint32_t number = gp_dataset_stack_find(dataset, id);
    if (number != GP_INDEX_NONE)
        return number;
    number = ADD_MAPPED(dataset, stacks, stack, id);
    if (number != GP_INDEX_NONE)
        dataset->stacks[number].id = id;
    return number;
}

static int on_header(void *context, const gp_file_header_t *header)
{
    ((gp_dataset_t *)context)->header = *header;
    return 0;
}

static int on_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    gp_dataset_t *dataset = context;
    gp_dataset_meta_t meta = {gp_arena_text(&dataset->arena, key, key_len),
                              gp_arena_text(&dataset->arena, value, value_len), value_len};

    for (size_t i = 0; i < dataset->meta_count && meta.key != NULL && meta.value != NULL; i++) // of several captures
        if (strcmp(dataset->metas[i].key, meta.key) == 0 && strcmp(meta.key, GP_NOT_KNOWN_KEY) == 0 &&
            strcmp(dataset->metas[i].value, meta.value) == 0)
            return 0;
    if (meta.key == NULL || meta.value == NULL ||
        gp_grow(&dataset->metas, &dataset->meta_capacity, dataset->meta_count, sizeof(*dataset->metas)) < 0)
        return -ENOMEM;
    dataset->metas[dataset->meta_count++] = meta;
    if (strcmp(meta.key, "exe") == 0)
        dataset->exe = meta.value;
    return 0;
}

const gp_dataset_meta_t *gp_dataset_meta(const gp_dataset_t *dataset, const char *key)
{
    for (size_t i = dataset->meta_count; i > 0; i--)
        if (strcmp(dataset->metas[i - 1].key, key) == 0)
            return &dataset->metas[i - 1];
    return NULL;
}

static int on_module(void *context, const gp_module_record_t *record, const char *path, size_t path_len)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_dataset_module_find(dataset, record->id);
    const char *copy = gp_arena_text(&dataset->arena, path, path_len);
    if (number == GP_INDEX_NONE)
        number = ADD(dataset, modules, module, record->id);
    if (number == GP_INDEX_NONE || copy == NULL)
        return -ENOMEM;
    gp_module_info_t *module = &dataset->modules[number];
    *module = (gp_module_info_t){
        .id = record->id,
        .path = copy,
        .build_id_len = record->build_id_len,
        .start = record->start,
        .end = record->end,
        .bias = record->bias,
    };
    memcpy(module->build_id, record->build_id, sizeof(module->build_id));
    return 0;
}

static int on_function(void *context, const gp_function_record_t *record, const char *name, const char *file)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_dataset_function_find(dataset, record->number);
    if (number == GP_INDEX_NONE)
        number = ADD(dataset, functions, function, record->number);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_function_info_t *function = &dataset->functions[number];
    function->number = record->number;
    function->first_line = record->first_line;
    function->name = gp_arena_text(&dataset->arena, name, record->name_len);
    function->file = gp_arena_text(&dataset->arena, file, record->file_len);
    return function->name != NULL && function->file != NULL ? 0 : -ENOMEM;
}

static int on_thread(void *context, const gp_thread_record_t *record)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_dataset_thread_find(dataset, record->index);
    if (number == GP_INDEX_NONE)
        number = ADD(dataset, threads, thread, record->index);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->threads[number] = *record;
    dataset->threads[number].name[sizeof(record->name) - 1] = '\0';
    return 0;
}

// Keep the name that a coroutine had, where it had one.
static int keep_name(gp_dataset_t *dataset, gp_dataset_coro_t *coro)
{
    const char *name = coro->record.name;
    uint32_t count = coro->former != NULL ? coro->former->count : 0;
    for (const gp_former_name_t *at = coro->former; at != NULL; at = at->before)
        if (strcmp(at->name, name) == 0)
            return 0;
    if (name[0] == '\0' || count == GP_FORMER_NAMES_MAX)
        return 0;
    gp_former_name_t *former = gp_arena_alloc(&dataset->arena, sizeof(*former));
    if (former == NULL)
        return -ENOMEM;
    *former = (gp_former_name_t){gp_arena_text(&dataset->arena, name, strlen(name)), coro->former, count + 1};
    coro->former = former;
    return former->name != NULL ? 0 : -ENOMEM;
}

static int on_coro(void *context, const gp_coro_record_t *record)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_dataset_coro_number(dataset, record->id);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_dataset_coro_t *coro = &dataset->coros[number];
    if (coro->defined && strncmp(coro->record.name, record->name, sizeof(record->name)) != 0 &&
        keep_name(dataset, coro) < 0)
        return -ENOMEM;
    coro->record = *record;
    coro->record.name[sizeof(record->name) - 1] = '\0';
    coro->defined = true;
    return 0;
}

static int on_origin(void *context, const gp_origin_record_t *record)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_dataset_coro_number(dataset, record->coro_id);
    uint32_t stack = gp_dataset_stack_number(dataset, record->stack_id);
    if (number == GP_INDEX_NONE || stack == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->coros[number].spawn_stack = stack;
    dataset->coros[number].region = record->region;
    return 0;
}

static int on_trace(void *context, const gp_trace_record_t *record)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_dataset_trace_number(dataset, record->index);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    if (record->index == 0) // 0 means "no trace" and cannot be defined
        return 0;
    memcpy(dataset->traces[number].id, record->id, sizeof(record->id));
    dataset->traces[number].defined = true;
    return 0;
}

static int on_stack(void *context, const gp_stack_record_t *record, const gp_loc_t *frames)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_dataset_stack_number(dataset, record->id);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_dataset_stack_t *stack = &dataset->stacks[number];
    stack->frames = gp_arena_copy(&dataset->arena, frames, record->depth * sizeof(*frames));
    stack->depth = record->depth;
    stack->flags = record->flags;
    stack->defined = true;
    return stack->frames ? 0 : -ENOMEM;
}

static int on_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    gp_dataset_t *dataset = context;
    dataset->totals = *record;
    memset(dataset->counters, 0, sizeof(dataset->counters));
    for (uint64_t i = 0; i < record->count && i < GP_COUNTER_COUNT; i++)
        dataset->counters[i] = values[i];
    gp_dataset_seen_at(dataset, record->time_ns);
    return 0;
}

static bool same_call(const void *owner, uint32_t number, const void *key)
{
    const gp_call_count_t *a = &((const gp_dataset_t *)owner)->calls[number], *b = key;
    return a->caller == b->caller && a->callee == b->callee;
}

static int on_call(void *context, const gp_call_count_t *call)
{
    gp_dataset_t *dataset = context;
    uint64_t hash = gp_hash_u64((uint64_t)call->caller << 32 | call->callee);
    uint32_t number = gp_index_find(&dataset->call_index, hash, same_call, dataset, call);
    if (number == GP_INDEX_NONE) {
        if (gp_grow(&dataset->calls, &dataset->call_capacity, dataset->call_count, sizeof(*dataset->calls)) < 0 ||
            gp_index_add(&dataset->call_index, hash, (uint32_t)dataset->call_count) < 0)
            return -ENOMEM;
        number = (uint32_t)dataset->call_count++;
    }
    dataset->calls[number] = *call;
    return 0;
}

static int on_census(void *context, const gp_census_record_t *record)
{
    gp_dataset_t *dataset = context;
    if (record->number < dataset->census_number)
        return 0;
    if (record->number > dataset->census_number)
        dataset->census_count = 0;
    dataset->census_number = record->number;
    if (gp_grow(&dataset->census, &dataset->census_capacity, dataset->census_count, sizeof(*dataset->census)) < 0)
        return -ENOMEM;
    dataset->census[dataset->census_count++] = *record;
    gp_dataset_seen_at(dataset, record->time_ns);
    return 0;
}

static int on_end(void *context, const gp_end_record_t *end)
{
    gp_dataset_t *dataset = context;
    dataset->end_reason = end->reason;
    dataset->end_error = end->error;
    gp_dataset_seen_at(dataset, end->time_ns);
    return 0;
}

bool gp_dataset_has_activity(const gp_dataset_t *dataset, const gp_activity_record_t *activity)
{
    return !dataset->windowed ||
           (activity->end_ns > dataset->window.from_ns && activity->start_ns < dataset->window.to_ns);
}

// Activities are looked at when the capture is read again; what they refer to is known by then.
static int on_activity(void *context, const gp_activity_record_t *activity)
{
    gp_dataset_t *dataset = context;
    dataset->activities_read++;
    gp_dataset_seen_at(dataset, activity->end_ns);
    if (!gp_dataset_has_activity(dataset, activity))
        return 0;
    return gp_dataset_coro_quick(dataset, activity->coro_id) != GP_INDEX_NONE &&
                   gp_dataset_trace_quick(dataset, activity->trace) != GP_INDEX_NONE
               ? 0
               : -ENOMEM;
}

static const gp_reader_handlers_t handlers = {
    .header = on_header,
    .meta = on_meta,
    .module = on_module,
    .function = on_function,
    .thread = on_thread,
    .coro = on_coro,
    .trace = on_trace,
    .stack = on_stack,
    .samples = gp_dataset_on_samples,
    .sum = gp_dataset_on_sum,
    .ledger = gp_dataset_on_ledger,
    .hog = gp_dataset_on_hog,
    .span = gp_dataset_on_span,
    .delay = gp_dataset_on_delay,
    .activity = on_activity,
    .counters = on_counters,
    .census = on_census,
    .origin = on_origin,
    .end = on_end,
    .call = on_call,
};

// What is missing in each of several is in dataset->captures; they are whole where all have an end.
static gp_reader_summary_t summary_of(const gp_captures_t *captures)
{
    gp_reader_summary_t sum = {.ended = true};
    for (size_t i = 0; i < captures->count; i++)
        sum.ended = sum.ended && captures->inputs[i].summary.ended;
    return captures->count == 1 ? captures->inputs[0].summary : sum;
}

static int load(gp_dataset_t *dataset, char error[GP_READER_ERROR_SIZE])
{
    gp_captures_t *captures = &dataset->captures;
    if (gp_dataset_trace_number(dataset, 0) == GP_INDEX_NONE || gp_dataset_stack_number(dataset, 0) == GP_INDEX_NONE)
        return -ENOMEM;
    int result = gp_captures_read(captures, &handlers, dataset, error);
    if (captures->count == 1) {
        captures->inputs[0].samples = dataset->samples_read;
        captures->inputs[0].activities = dataset->activities_read;
    }
    dataset->summary = summary_of(captures);
    if (result == 0)
        result = gp_dataset_finish_spans(dataset);
    if (result == 0)
        result = gp_dataset_apply_lifetimes(dataset, error);
    gp_dataset_sum_up(dataset);
    return result;
}

gp_dataset_t *gp_dataset_load_captures(gp_captures_t *captures, unsigned keep, const gp_dataset_window_t *window,
                                       char error[GP_READER_ERROR_SIZE])
{
    gp_dataset_t *dataset = calloc(1, sizeof(*dataset));
    int result = -ENOMEM;
    strcpy(error, "not enough memory");
    if (dataset == NULL) {
        gp_captures_free(captures);
    } else {
        dataset->captures = *captures;
        dataset->captures.keep_words = keep & GP_KEEP_PLAIN && window == NULL ? GP_PLAIN_WORDS : 0;
        dataset->captures.keep_bytes = KEPT_BYTES;
        dataset->exe = "";
        dataset->keep = keep;
        dataset->windowed = window != NULL;
        if (window != NULL)
            dataset->window = *window;
        result = load(dataset, error);
        captures->at = dataset->captures.at;
    }
    if (result == 0)
        return dataset;
    gp_dataset_free(dataset);
    errno = -result;
    return NULL;
}

gp_dataset_t *gp_dataset_load_fd(int fd, unsigned keep, char error[GP_READER_ERROR_SIZE])
{
    gp_captures_t captures = {0};
    int result = gp_captures_add(&captures, fd, "");
    if (result == 0)
        return gp_dataset_load_captures(&captures, keep, NULL, error);
    snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    gp_captures_free(&captures);
    errno = -result;
    return NULL;
}

gp_dataset_t *gp_dataset_load(const char *path, unsigned keep, char error[GP_READER_ERROR_SIZE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        strcpy(error, strerror(errno));
        return NULL;
    }
    gp_dataset_t *dataset = gp_dataset_load_fd(fd, keep, error);
    int saved = errno;
    close(fd);
    errno = saved;
    return dataset;
}

void gp_dataset_free(gp_dataset_t *dataset)
{
    if (dataset == NULL)
        return;
    free(dataset->metas);
    free(dataset->modules);
    free(dataset->functions);
    free(dataset->threads);
    free(dataset->coros);
    free(dataset->traces);
    free(dataset->stacks);
    free(dataset->shares);
    free(dataset->thread_sums);
    free(dataset->hogs);
    free(dataset->delays);
    free(dataset->sums);
    gp_index_free(&dataset->sum_index);
    free(dataset->spans);
    free(dataset->lifetimes);
    free(dataset->lives);
    free(dataset->census);
    gp_id_map_free(&dataset->coro_map);
    gp_id_map_free(&dataset->trace_map);
    gp_id_map_free(&dataset->stack_map);
    free(dataset->calls);
    gp_index_free(&dataset->module_index);
    gp_index_free(&dataset->function_index);
    gp_index_free(&dataset->thread_index);
    gp_index_free(&dataset->coro_index);
    gp_index_free(&dataset->trace_index);
    gp_index_free(&dataset->stack_index);
    gp_index_free(&dataset->thread_sum_index);
    gp_index_free(&dataset->share_index);
    gp_index_free(&dataset->hog_index);
    gp_index_free(&dataset->span_index);
    gp_index_free(&dataset->call_index);
    gp_arena_free(&dataset->arena);
    gp_captures_free(&dataset->captures);
    free(dataset);
}
