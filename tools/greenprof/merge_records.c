// SPDX-License-Identifier: MIT
#include "merge_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/intern.h"

enum { FLUSH_BYTES = 4 << 20 };

void *gp_merge_room(gp_merge_t *merge, enum gp_chunk_type type, size_t bytes)
{
    // What is waiting is written now and then.
    if (gp_writer_pending(&merge->writer) > FLUSH_BYTES)
        gp_writer_flush(&merge->writer);
    return gp_writer_add(&merge->writer, type, bytes);
}

int gp_merge_error(const gp_merge_t *merge)
{
    int error = atomic_load_explicit(&merge->writer.error, memory_order_relaxed);
    return error != 0 ? error : -ENOMEM;
}

static char *copy_text(const char *value, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, value, len);
        copy[len] = '\0';
    }
    return copy;
}

const char *const gp_merge_text_keys[GP_MERGE_TEXTS] = {
    [GP_MERGE_EXE] = "exe", [GP_MERGE_CMDLINE] = "cmdline", [GP_MERGE_HOSTNAME] = "hostname"};

static int on_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    gp_merge_input_t *input = ((gp_merge_t *)context)->input;
    for (size_t i = 0; i < GP_MERGE_TEXTS; i++) {
        if (strlen(gp_merge_text_keys[i]) != key_len || memcmp(key, gp_merge_text_keys[i], key_len) != 0)
            continue;
        free(input->texts[i].text);
        input->texts[i] = (gp_merge_text_t){copy_text(value, value_len), value_len};
        return input->texts[i].text != NULL ? 0 : -ENOMEM;
    }
    return 0;
}

static gp_merge_key_t key_of(const void *bytes, size_t len, uint64_t more)
{
    gp_merge_key_t key;
    gp_intern_key(bytes, len, key.words);
    key.words[1] ^= more;
    return key;
}

static int on_module(void *context, const gp_module_record_t *module, const char *path, size_t path_len)
{
    gp_merge_t *merge = context;
    bool is_new;
    gp_merge_key_t key =
        module->build_id_len > 0 ? key_of(module->build_id, module->build_id_len, 1) : key_of(path, path_len, 0);
    uint32_t id = gp_merge_ids_define(&merge->ids, GP_MERGE_MODULES, module->id, key, &is_new);
    if (id == 0)
        return -ENOMEM;
    if (id >= GP_MODULE_LANGUAGE)
        return -EOVERFLOW;
    if (!is_new)
        return 0;
    gp_module_record_t *record = gp_merge_room(merge, GP_CHUNK_MODULES, sizeof(*record) + path_len);
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *module;
    record->id = id;
    memcpy(record + 1, path, path_len);
    return 0;
}

static int on_function(void *context, const gp_function_record_t *function, const char *name, const char *file)
{
    gp_merge_t *merge = context;
    bool is_new;
    gp_merge_key_t key = key_of(name, function->name_len, function->first_line);
    gp_merge_key_t place = key_of(file, function->file_len, function->first_line);
    key.words[0] ^= place.words[1] * 3; // name and file are not interchangeable
    uint32_t number = gp_merge_ids_define(&merge->ids, GP_MERGE_FUNCTIONS, function->number, key, &is_new);
    if (number == 0)
        return -ENOMEM;
    if (number > GP_LANGUAGE_FUNCTIONS_MAX)
        return -EOVERFLOW;
    if (!is_new)
        return 0;
    size_t bytes = (size_t)function->name_len + function->file_len;
    gp_function_record_t *record = gp_merge_room(merge, GP_CHUNK_FUNCTIONS, sizeof(*record) + bytes);
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *function;
    record->number = number;
    memcpy(record + 1, name, function->name_len);
    memcpy((char *)(record + 1) + function->name_len, file, function->file_len);
    return 0;
}

static int on_thread(void *context, const gp_thread_record_t *thread)
{
    gp_merge_t *merge = context;
    gp_thread_record_t *record = gp_merge_room(merge, GP_CHUNK_THREADS, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *thread;
    record->index = gp_merge_ids_thread(&merge->ids, thread->index);
    record->coro_id = gp_merge_ids_coro(&merge->ids, thread->coro_id);
    record->start_ns += merge->input->shift_ns;
    record->end_ns += thread->end_ns != 0 ? merge->input->shift_ns : 0;
    return 0;
}

static int on_coro(void *context, const gp_coro_record_t *coro)
{
    gp_merge_t *merge = context;
    gp_coro_record_t *record = gp_merge_room(merge, GP_CHUNK_COROS, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *coro;
    record->id = gp_merge_ids_coro(&merge->ids, coro->id);
    record->parent_id = gp_merge_ids_coro(&merge->ids, coro->parent_id);
    record->entry = gp_merge_ids_loc(&merge->ids, coro->entry);
    record->thread = gp_merge_ids_thread(&merge->ids, coro->thread);
    record->birth_ns += merge->input->shift_ns;
    return 0;
}

static int on_origin(void *context, const gp_origin_record_t *origin)
{
    gp_merge_t *merge = context;
    gp_origin_record_t *record = gp_merge_room(merge, GP_CHUNK_ORIGINS, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *origin;
    record->coro_id = gp_merge_ids_coro(&merge->ids, origin->coro_id);
    record->stack_id = gp_merge_ids_find(&merge->ids, GP_MERGE_STACKS, origin->stack_id);
    return 0;
}

static int on_trace(void *context, const gp_trace_record_t *trace)
{
    gp_merge_t *merge = context;
    gp_merge_key_t key;
    bool is_new;
    if (trace->index == 0)
        return 0;
    memcpy(&key, trace->id, sizeof(key));
    uint32_t index = gp_merge_ids_define(&merge->ids, GP_MERGE_TRACES, trace->index, key, &is_new);
    if (index == 0)
        return -ENOMEM;
    if (!is_new)
        return 0;
    gp_trace_record_t *record = gp_merge_room(merge, GP_CHUNK_TRACES, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *trace;
    record->index = index;
    return 0;
}

static int translate(gp_merge_t *merge, const gp_loc_t *frames, size_t depth)
{
    if (depth > merge->loc_room) {
        gp_loc_t *grown = realloc(merge->locs, depth * sizeof(*grown));
        if (grown == NULL)
            return -ENOMEM;
        merge->locs = grown;
        merge->loc_room = depth;
    }
    for (size_t i = 0; i < depth; i++)
        merge->locs[i] = gp_merge_ids_loc(&merge->ids, frames[i]);
    return 0;
}

static int on_stack(void *context, const gp_stack_record_t *stack, const gp_loc_t *frames)
{
    gp_merge_t *merge = context;
    size_t bytes = stack->depth * sizeof(*frames);
    bool is_new;
    if (translate(merge, frames, stack->depth) < 0)
        return -ENOMEM;
    uint32_t id =
        gp_merge_ids_define(&merge->ids, GP_MERGE_STACKS, stack->id, key_of(merge->locs, bytes, stack->flags), &is_new);
    if (id == 0)
        return -ENOMEM;
    if (!is_new)
        return 0;
    gp_stack_record_t *record = gp_merge_room(merge, GP_CHUNK_STACKS, sizeof(*record) + bytes);
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *stack;
    record->id = id;
    if (bytes > 0)
        memcpy(record + 1, merge->locs, bytes);
    return 0;
}

static int on_sample(void *context, const gp_sample_record_t *sample)
{
    gp_merge_t *merge = context;
    gp_sample_record_t *record = gp_merge_room(merge, GP_CHUNK_SAMPLES, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *sample;
    record->time_ns += merge->input->shift_ns;
    record->coro_id = gp_merge_ids_coro(&merge->ids, sample->coro_id);
    record->thread = gp_merge_ids_thread(&merge->ids, sample->thread);
    record->stack_id = gp_merge_ids_find(&merge->ids, GP_MERGE_STACKS, sample->stack_id);
    record->trace = gp_merge_ids_find(&merge->ids, GP_MERGE_TRACES, sample->trace);
    return 0;
}

static int on_ledger(void *context, const gp_ledger_record_t *ledger)
{
    gp_merge_t *merge = context;
    gp_ledger_record_t *record = gp_merge_room(merge, GP_CHUNK_LEDGER, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *ledger;
    record->time_ns += merge->input->shift_ns;
    record->coro_id = gp_merge_ids_coro(&merge->ids, ledger->coro_id);
    record->trace = gp_merge_ids_find(&merge->ids, GP_MERGE_TRACES, ledger->trace);
    return 0;
}

enum { HOG_BITS = 40 }; // numbers of hogs within one capture

static uint64_t hog_id(const gp_merge_t *merge, uint64_t id)
{
    return (uint64_t)(merge->input - merge->inputs) << HOG_BITS | id;
}

static int on_hog(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks)
{
    gp_merge_t *merge = context;
    size_t bytes = hog->stack_count * sizeof(*stacks);
    gp_hog_record_t *record = gp_merge_room(merge, GP_CHUNK_HOGS, sizeof(*record) + bytes);
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *hog;
    record->id = hog_id(merge, hog->id);
    record->start_ns += merge->input->shift_ns;
    record->coro_id = gp_merge_ids_coro(&merge->ids, hog->coro_id);
    record->thread = gp_merge_ids_thread(&merge->ids, hog->thread);
    record->trace = gp_merge_ids_find(&merge->ids, GP_MERGE_TRACES, hog->trace);
    gp_hog_stack_t *out = (gp_hog_stack_t *)(void *)(record + 1);
    for (uint32_t i = 0; i < hog->stack_count; i++) {
        out[i] = stacks[i];
        out[i].stack_id = gp_merge_ids_find(&merge->ids, GP_MERGE_STACKS, stacks[i].stack_id);
    }
    return 0;
}

static int on_delay(void *context, const gp_delay_record_t *delay)
{
    gp_merge_t *merge = context;
    gp_delay_record_t *record = gp_merge_room(merge, GP_CHUNK_DELAYS, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *delay;
    record->hog_id = hog_id(merge, delay->hog_id);
    record->coro_id = gp_merge_ids_coro(&merge->ids, delay->coro_id);
    record->trace = gp_merge_ids_find(&merge->ids, GP_MERGE_TRACES, delay->trace);
    return 0;
}

static int on_activity(void *context, const gp_activity_record_t *activity)
{
    gp_merge_t *merge = context;
    uint64_t shift = merge->input->shift_ns;
    gp_activity_record_t *record = gp_merge_room(merge, GP_CHUNK_ACTIVITIES, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *activity;
    record->coro_id = gp_merge_ids_coro(&merge->ids, activity->coro_id);
    record->waker_id = gp_merge_ids_coro(&merge->ids, activity->waker_id);
    record->trace = gp_merge_ids_find(&merge->ids, GP_MERGE_TRACES, activity->trace);
    record->thread = gp_merge_ids_thread(&merge->ids, activity->thread);
    record->start_ns += shift;
    record->left_ns += shift;
    record->end_ns += shift;
    record->ready_ns += activity->ready_ns != 0 ? shift : 0;
    return 0;
}

static int on_counters(void *context, const gp_counters_record_t *counters, const uint64_t *values)
{
    gp_merge_input_t *input = ((gp_merge_t *)context)->input;
    input->totals = *counters;
    memset(input->counters, 0, sizeof(input->counters));
    for (uint64_t i = 0; i < counters->count && i < GP_COUNTER_COUNT; i++)
        input->counters[i] = values[i];
    return 0;
}

static int on_end(void *context, const gp_end_record_t *end)
{
    gp_merge_input_t *input = ((gp_merge_t *)context)->input;
    input->end = *end;
    input->ended = true;
    return 0;
}

static int on_call(void *context, const gp_call_record_t *call)
{
    gp_merge_t *merge = context;
    gp_call_record_t *record = gp_merge_room(merge, GP_CHUNK_CALLS, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = *call;
    record->caller = gp_merge_ids_called(&merge->ids, call->caller);
    record->callee = gp_merge_ids_called(&merge->ids, call->callee);
    record->caller_loc = gp_merge_ids_loc(&merge->ids, call->caller_loc);
    record->callee_loc = gp_merge_ids_loc(&merge->ids, call->callee_loc);
    return 0;
}

// A kind of record that is new to captures must be passed on here, too ("samples" is another way to
// be given them). A census is left out: those who were alive at the
// ends of several processes were not alive at one moment.
_Static_assert(sizeof(gp_reader_handlers_t) == 19 * sizeof(int (*)(void)), "merge passes on every kind of record");

const gp_reader_handlers_t gp_merge_handlers = {
    .meta = on_meta,
    .module = on_module,
    .function = on_function,
    .thread = on_thread,
    .coro = on_coro,
    .origin = on_origin,
    .trace = on_trace,
    .stack = on_stack,
    .sample = on_sample,
    .ledger = on_ledger,
    .hog = on_hog,
    .delay = on_delay,
    .activity = on_activity,
    .counters = on_counters,
    .end = on_end,
    .call = on_call,
};
