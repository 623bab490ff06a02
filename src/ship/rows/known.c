// SPDX-License-Identifier: MIT
#include "ship/rows/known.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/build.h"

enum { TABLE_MIN = 64, LABEL_SIZE = 512 };

uint64_t *gp_known_get(const gp_known_table_t *table, uint64_t number)
{
    if (table->size == 0)
        return NULL;
    for (size_t at = gp_hash_u64(number);; at++) {
        gp_known_entry_t *entry = &table->entries[at & (table->size - 1)];
        if (entry->number == 0)
            return NULL;
        if (entry->number == number)
            return &entry->value;
    }
}

static void place(gp_known_table_t *table, uint64_t number, uint64_t value)
{
    size_t at = gp_hash_u64(number);
    while (table->entries[at & (table->size - 1)].number != 0)
        at++;
    table->entries[at & (table->size - 1)] = (gp_known_entry_t){number, value};
    table->count++;
}

static int enlarge(gp_known_table_t *table)
{
    gp_known_table_t larger = {.size = table->size > 0 ? 2 * table->size : TABLE_MIN};
    larger.entries = calloc(larger.size, sizeof(*larger.entries));
    if (larger.entries == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < table->size; i++)
        if (table->entries[i].number != 0)
            place(&larger, table->entries[i].number, table->entries[i].value);
    free(table->entries);
    *table = larger;
    return 0;
}

int gp_known_put(gp_known_table_t *table, uint64_t number, uint64_t value)
{
    uint64_t *old = gp_known_get(table, number);
    if (old != NULL) {
        *old = value;
        return 0;
    }
    if (4 * table->count >= 3 * table->size && enlarge(table) < 0)
        return -ENOMEM;
    place(table, number, value);
    return 0;
}

void gp_known_clear(gp_known_table_t *table)
{
    free(table->entries);
    *table = (gp_known_table_t){0};
}

const char *gp_known_meta(const gp_known_t *known, const char *key, size_t *len)
{
    for (size_t i = 0; i < known->meta_count; i++) {
        if (strcmp(known->metas[i].key, key) != 0)
            continue;
        if (len != NULL) // in front of the text
            memcpy(len, known->metas[i].value - sizeof(*len), sizeof(*len));
        return known->metas[i].value;
    }
    return NULL;
}

const char *gp_known_text(gp_known_t *known, const char *text)
{
    uint64_t hash = gp_hash_bytes(text, strlen(text)) | 1;
    for (const uint64_t *found; (found = gp_known_get(&known->labels, hash)) != NULL; hash += 2)
        if (strcmp((const char *)(uintptr_t)*found, text) == 0)
            return (const char *)(uintptr_t)*found;
    const char *copy = gp_arena_text(&known->passing, text, strlen(text));
    if (copy == NULL || gp_known_put(&known->labels, hash, (uintptr_t)copy) < 0)
        return NULL;
    return copy;
}

static void seen_at(gp_known_t *known, uint64_t time_ns)
{
    known->end_ns = time_ns > known->end_ns ? time_ns : known->end_ns;
}

static bool is_wanted(const gp_known_t *known, uint64_t key)
{
    return known->wanted == NULL || gp_known_get(known->wanted, key) != NULL;
}

static int on_header(void *context, const gp_file_header_t *header)
{
    gp_known_t *known = context;
    known->header = *header;
    known->has_header = true;
    return 0;
}

static int on_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    gp_known_t *known = context;
    for (size_t i = 0; i < known->meta_count; i++) // read again
        if (strlen(known->metas[i].key) == key_len && memcmp(known->metas[i].key, key, key_len) == 0 &&
            memcmp(known->metas[i].value - sizeof(value_len), &value_len, sizeof(value_len)) == 0 &&
            memcmp(known->metas[i].value, value, value_len) == 0)
            return 0;
    char *name = gp_arena_text(&known->texts, key, key_len);
    uint8_t *text = gp_arena_alloc(&known->texts, sizeof(value_len) + value_len + 1);
    if (name == NULL || text == NULL)
        return -ENOMEM;
    memcpy(text, &value_len, sizeof(value_len));
    memcpy(text + sizeof(value_len), value, value_len);
    const gp_row_pair_t meta = {name, (const char *)text + sizeof(value_len)};
    for (size_t i = 0; i < known->meta_count; i++) {
        if (strcmp(known->metas[i].key, name) == 0) {
            known->metas[i] = meta;
            return 0;
        }
    }
    if (gp_grow(&known->metas, &known->meta_capacity, known->meta_count, sizeof(meta)) < 0)
        return -ENOMEM;
    known->metas[known->meta_count++] = meta;
    return 0;
}

static int on_module(void *context, const gp_module_record_t *record, const char *path, size_t path_len)
{
    gp_known_t *known = context;
    gp_module_info_t module = {.id = record->id, .start = record->start, .end = record->end, .bias = record->bias};
    const uint64_t *found = gp_known_get(&known->module_table, record->id);
    module.build_id_len =
        record->build_id_len < sizeof(module.build_id) ? record->build_id_len : sizeof(module.build_id);
    memcpy(module.build_id, record->build_id, sizeof(module.build_id));
    if (found != NULL) { // read again, or mapped again
        const gp_module_info_t *old = &known->modules[*found];
        if (strlen(old->path) == path_len && memcmp(old->path, path, path_len) == 0 &&
            old->build_id_len == module.build_id_len &&
            memcmp(old->build_id, module.build_id, sizeof(module.build_id)) == 0)
            return 0;
    }
    module.path = gp_arena_text(&known->texts, path, path_len);
    if (module.path == NULL ||
        gp_grow(&known->modules, &known->module_capacity, known->module_count, sizeof(module)) < 0 ||
        gp_grow(&known->module_numbers, &known->number_capacity, known->module_count, sizeof(uint32_t)) < 0 ||
        gp_known_put(&known->module_table, record->id, known->module_count) < 0)
        return -ENOMEM;
    known->module_numbers[known->module_count] = 0;
    known->modules[known->module_count++] = module;
    return 0;
}

static int on_function(void *context, const gp_function_record_t *record, const char *name, const char *file)
{
    gp_known_t *known = context;
    if (gp_known_get(&known->function_table, record->number) != NULL)
        return 0;
    gp_function_info_t function = {
        .number = record->number,
        .first_line = record->first_line,
        .name = gp_arena_text(&known->texts, name, record->name_len),
        .file = gp_arena_text(&known->texts, file, record->file_len),
    };
    if (function.name == NULL || function.file == NULL ||
        gp_grow(&known->functions, &known->function_capacity, known->function_count, sizeof(function)) < 0 ||
        gp_known_put(&known->function_table, record->number, known->function_count) < 0)
        return -ENOMEM;
    known->functions[known->function_count++] = function;
    return 0;
}

static int on_thread(void *context, const gp_thread_record_t *thread)
{
    gp_known_t *known = context;
    const uint64_t *found = gp_known_get(&known->thread_table, thread->index);
    if (found != NULL) {
        known->threads[*found] = *thread;
        return 0;
    }
    if (gp_grow(&known->threads, &known->thread_capacity, known->thread_count, sizeof(*thread)) < 0 ||
        gp_known_put(&known->thread_table, thread->index, known->thread_count) < 0)
        return -ENOMEM;
    known->threads[known->thread_count++] = *thread;
    return 0;
}

static uint32_t module_number(gp_known_t *known, uint32_t id, const gp_module_info_t **module)
{
    const uint64_t *found = gp_known_get(&known->module_table, id);
    *module = NULL;
    if (id == 0 || found == NULL)
        return GP_SYMBOLIZER_NO_MODULE;
    *module = &known->modules[*found];
    uint32_t *number = &known->module_numbers[*found];
    if (*number == 0)
        *number = 1 + gp_symbolizer_module(known->symbolizer, (*module)->path, strlen((*module)->path),
                                           (*module)->build_id, (*module)->build_id_len);
    return *number - 1;
}

// Code without a module is of this process alone: it has a symbolizer, and a perf map, of its own.
static const gp_symbol_t *resolve_jit(gp_known_t *known, uint64_t address)
{
    if (known->jit == NULL) {
        known->jit = gp_symbolizer_create();
        if (known->jit != NULL)
            gp_symbolizer_process_perf_map(known->jit, known->header.pid, known->header.start_realtime_ns, UINT64_MAX);
    }
    return known->jit != NULL ? gp_symbolizer_resolve(known->jit, GP_SYMBOLIZER_NO_MODULE, address) : NULL;
}

static const gp_symbol_t *resolve(gp_known_t *known, gp_loc_t loc, const gp_module_info_t **module)
{
    uint32_t number = module_number(known, GP_LOC_MODULE(loc), module);
    if (number == GP_SYMBOLIZER_NO_MODULE)
        return resolve_jit(known, GP_LOC_OFFSET(loc));
    return gp_symbolizer_resolve(known->symbolizer, number, GP_LOC_OFFSET(loc));
}

static const char *thread_label(const gp_known_t *known, const gp_coro_record_t *coro, char text[LABEL_SIZE])
{
    const uint64_t *found = gp_known_get(&known->thread_table, coro->thread);
    const char *name = found != NULL ? known->threads[*found].name : coro->name;
    if (name[0] == '\0')
        name = "unnamed"; // a number would be another one in every process
    snprintf(text, LABEL_SIZE, "[thread %.*s]", (int)sizeof(coro->name), name);
    return text;
}

// What a coroutine does rather than what it is called: names often have a number in them.
static const char *coro_label(gp_known_t *known, const gp_coro_record_t *coro, char text[LABEL_SIZE])
{
    const gp_module_info_t *module;
    const uint64_t *function = NULL;
    const gp_symbol_t *symbol = NULL;
    if (coro->kind == GP_CORO_THREAD)
        return thread_label(known, coro, text);
    if (GP_LOC_MODULE(coro->entry) == GP_MODULE_LANGUAGE)
        function = gp_known_get(&known->function_table, GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(coro->entry)));
    else if (coro->entry != 0 && GP_LOC_MODULE(coro->entry) != GP_MODULE_PSEUDO)
        symbol = gp_symbol_outermost(resolve(known, coro->entry, &module));
    if (function != NULL)
        return known->functions[*function].name;
    if (symbol != NULL)
        return symbol->function;
    snprintf(text, LABEL_SIZE, "%.*s", (int)sizeof(coro->name), coro->name[0] != '\0' ? coro->name : "[unnamed]");
    return text;
}

static int on_coro(void *context, const gp_coro_record_t *coro)
{
    gp_known_t *known = context;
    char text[LABEL_SIZE];
    if (!is_wanted(known, GP_KNOWN_CORO | coro->id))
        return 0;
    const char *label = gp_known_text(known, coro_label(known, coro, text));
    return label != NULL && coro->id != 0 ? gp_known_put(&known->coros, coro->id, (uintptr_t)label)
           : label == NULL                ? -ENOMEM
                                          : 0;
}

static int on_trace(void *context, const gp_trace_record_t *trace)
{
    gp_known_t *known = context;
    if (trace->index == 0 || !is_wanted(known, GP_KNOWN_TRACE | trace->index))
        return 0;
    const uint8_t *id = gp_arena_copy(&known->passing, trace->id, sizeof(trace->id));
    return id != NULL ? gp_known_put(&known->traces, trace->index, (uintptr_t)id) : -ENOMEM;
}

static int on_stack(void *context, const gp_stack_record_t *record, const gp_loc_t *frames)
{
    gp_known_t *known = context;
    if (record->id == 0 || !is_wanted(known, GP_KNOWN_STACK | record->id))
        return 0;
    gp_known_stack_t *stack = gp_arena_alloc(&known->passing, sizeof(*stack) + record->depth * sizeof(*frames));
    if (stack == NULL)
        return -ENOMEM;
    stack->depth = record->depth;
    memcpy(stack->frames, frames, record->depth * sizeof(*frames));
    return gp_known_put(&known->stacks, record->id, (uintptr_t)stack);
}

static int on_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    gp_known_t *known = context;
    uint64_t count = record->count < GP_COUNTER_COUNT ? record->count : GP_COUNTER_COUNT;
    if (record->time_ns < known->totals.time_ns)
        return 0; // read again
    known->totals = *record;
    memcpy(known->counters, values, count * sizeof(*values));
    seen_at(known, record->time_ns);
    return 0;
}

static int on_end(void *context, const gp_end_record_t *end)
{
    gp_known_t *known = context;
    known->ended = true;
    seen_at(known, end->time_ns);
    return 0;
}

const gp_reader_handlers_t gp_known_handlers = {
    .header = on_header,
    .meta = on_meta,
    .module = on_module,
    .function = on_function,
    .thread = on_thread,
    .coro = on_coro,
    .trace = on_trace,
    .stack = on_stack,
    .ledger = gp_known_add_ledger,
    .span = gp_known_see_span,
    .counters = on_counters,
    .end = on_end,
};

// Frames of a stack as rows: root first, an inlined function behind the one that it is inlined into.
typedef struct frames {
    gp_row_frame_t *items;
    size_t count, capacity;
} frames_t;

static int add_frame(frames_t *frames, const gp_row_frame_t *frame)
{
    if (gp_grow(&frames->items, &frames->capacity, frames->count, sizeof(*frame)) < 0)
        return -ENOMEM;
    frames->items[frames->count++] = *frame;
    return 0;
}

static const char *hex_of(gp_known_t *known, const gp_module_info_t *module)
{
    char text[2 * sizeof(module->build_id) + 1] = "";
    for (size_t i = 0; i < module->build_id_len; i++)
        snprintf(text + 2 * i, 3, "%02x", module->build_id[i]);
    return gp_known_text(known, text);
}

// A function that is inlined, and those around it: the outermost first.
static int add_symbol(frames_t *frames, const gp_symbol_t *symbol, gp_row_frame_t *frame)
{
    int result = symbol->outer != NULL ? add_symbol(frames, symbol->outer, frame) : 0;
    if (gp_symbol_is_hidden(symbol))
        return result;
    frame->name = symbol->function;
    frame->file = symbol->file != NULL && strcmp(symbol->file, symbol->module) != 0 ? symbol->file : "";
    frame->line = symbol->line;
    frame->is_inlined = symbol->outer != NULL;
    return result < 0 ? result : add_frame(frames, frame);
}

static int add_native(gp_known_t *known, frames_t *frames, gp_loc_t loc)
{
    const gp_module_info_t *module;
    const gp_symbol_t *symbol = resolve(known, loc, &module);
    gp_row_frame_t frame = {.name = "[unknown]", .file = "", .module = "", .build = "", .address = 0};
    if (symbol == NULL)
        return -ENOMEM;
    frame.module = module != NULL ? module->path : "";
    bool is_nameless = symbol->outer == NULL && strstr(symbol->function, "+0x") != NULL;
    if (is_nameless && module != NULL) {
        frame.address = GP_LOC_OFFSET(loc);
        frame.build = hex_of(known, module);
        if (frame.build == NULL)
            return -ENOMEM;
    }
    return add_symbol(frames, symbol, &frame);
}

static int add_location(gp_known_t *known, frames_t *frames, gp_loc_t loc)
{
    gp_row_frame_t frame = {.file = "", .module = "", .build = ""};
    if (GP_LOC_MODULE(loc) == GP_MODULE_PSEUDO) {
        frame.name = gp_report_pseudo_name(GP_LOC_OFFSET(loc));
        return add_frame(frames, &frame);
    }
    if (GP_LOC_MODULE(loc) != GP_MODULE_LANGUAGE)
        return add_native(known, frames, loc);
    const uint64_t *found = gp_known_get(&known->function_table, GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(loc)));
    frame.name = found != NULL ? known->functions[*found].name : "[lost function]";
    frame.file = found != NULL ? known->functions[*found].file : "";
    frame.line = GP_LANGUAGE_LINE(GP_LOC_OFFSET(loc));
    return add_frame(frames, &frame);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return gp_hash_more(hash, gp_hash_bytes(text, strlen(text)));
}

// Equal frames of any process, host and day have one id.
static uint64_t hash_frames(const frames_t *frames)
{
    uint64_t hash = frames->count;
    for (size_t i = 0; i < frames->count; i++) {
        const gp_row_frame_t *frame = &frames->items[i];
        hash = hash_text(hash_text(hash_text(hash, frame->name), frame->file), frame->module);
        hash = gp_hash_more(gp_hash_more(hash_text(hash, frame->build), frame->address),
                            (uint64_t)frame->line << 1 | frame->is_inlined);
    }
    return hash != 0 ? hash : 1;
}

const gp_row_stack_t *gp_known_row(gp_known_t *known, gp_known_stack_t *stack)
{
    frames_t frames = {0};
    int result = 0;
    if (stack->is_named)
        return &stack->row;
    for (uint32_t i = stack->depth; i > 0 && result == 0; i--)
        result = add_location(known, &frames, stack->frames[i - 1]);
    if (result == 0) {
        const gp_row_frame_t *copy = gp_arena_copy(&known->passing, frames.items, frames.count * sizeof(*copy));
        stack->row = (gp_row_stack_t){hash_frames(&frames), copy, (uint32_t)frames.count};
        stack->is_named = copy != NULL || frames.count == 0;
    }
    free(frames.items);
    return stack->is_named ? &stack->row : NULL;
}

bool gp_known_trim(gp_known_t *known, bool anyway)
{
    size_t tables = known->coros.size + known->traces.size + known->stacks.size + known->endpoints.size +
                    known->labels.size + known->sums.size;
    if (!anyway && known->passing.bytes + tables * sizeof(gp_known_entry_t) < GP_KNOWN_MAX)
        return false;
    gp_known_clear(&known->coros);
    gp_known_clear(&known->traces);
    gp_known_clear(&known->stacks);
    gp_known_clear(&known->endpoints);
    gp_known_clear(&known->labels);
    gp_known_clear(&known->sums);
    known->has_sums = false;
    gp_arena_free(&known->passing);
    known->passing = (gp_arena_t){0};
    if (known->module_count > 0)
        memset(known->module_numbers, 0, known->module_count * sizeof(*known->module_numbers));
    if (known->jit != NULL)
        gp_symbolizer_destroy(known->jit);
    known->jit = NULL;
    return true;
}

void gp_known_free(gp_known_t *known)
{
    gp_known_trim(known, true);
    gp_known_clear(&known->module_table);
    gp_known_clear(&known->thread_table);
    gp_known_clear(&known->function_table);
    free(known->metas);
    free(known->modules);
    free(known->module_numbers);
    free(known->threads);
    free(known->functions);
    gp_arena_free(&known->texts);
    *known = (gp_known_t){0};
}
