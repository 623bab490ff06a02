// SPDX-License-Identifier: MIT
#include "facts/facts.h"

#include <errno.h>
#include <string.h>

int gp_facts_init(gp_facts_t *facts, bool is_bounded)
{
    *facts = (gp_facts_t){
        .exe = "",
        .metas = GP_TABLE_PLAIN(gp_facts_meta_t),
        .modules = GP_TABLE_BY(gp_module_info_t, id),
        .functions = GP_TABLE_BY(gp_function_info_t, number),
        .threads = GP_TABLE_BY(gp_thread_record_t, index),
        .coros = GP_TABLE_BY(gp_facts_coro_t, record.id),
        .traces = GP_TABLE_BY(gp_facts_trace_t, index),
        .stacks = GP_TABLE_BY(gp_facts_stack_t, id),
        .is_bounded = is_bounded,
    };
    // Ids left after a drop are large.
    facts->coros.table.is_sparse = facts->traces.table.is_sparse = facts->stacks.table.is_sparse = is_bounded;
    return gp_facts_drop(facts);
}

int gp_facts_drop(gp_facts_t *facts)
{
    gp_table_free(&facts->coros.table);
    gp_table_free(&facts->traces.table);
    gp_table_free(&facts->stacks.table);
    gp_arena_free(&facts->passing);
    facts->passing = (gp_arena_t){0};
    return gp_table_add(&facts->traces.table, 0) == 0 && gp_table_add(&facts->stacks.table, 0) == 0 ? 0 : -ENOMEM;
}

size_t gp_facts_passing_bytes(const gp_facts_t *facts)
{
    return facts->passing.bytes + gp_table_bytes(&facts->coros.table) + gp_table_bytes(&facts->traces.table) +
           gp_table_bytes(&facts->stacks.table);
}

void gp_facts_free(gp_facts_t *facts)
{
    gp_table_free(&facts->metas.table);
    gp_table_free(&facts->modules.table);
    gp_table_free(&facts->functions.table);
    gp_table_free(&facts->threads.table);
    gp_table_free(&facts->coros.table);
    gp_table_free(&facts->traces.table);
    gp_table_free(&facts->stacks.table);
    gp_arena_free(&facts->kept);
    gp_arena_free(&facts->passing);
    facts->kept = facts->passing = (gp_arena_t){0};
}

const gp_facts_meta_t *gp_facts_meta(const gp_facts_t *facts, const char *key)
{
    for (size_t i = facts->metas.count; i > 0; i--)
        if (strcmp(facts->metas.items[i - 1].key, key) == 0)
            return &facts->metas.items[i - 1];
    return NULL;
}

const gp_module_info_t *gp_facts_module(const gp_facts_t *facts, gp_loc_t loc)
{
    uint32_t number = gp_table_find(&facts->modules.table, GP_LOC_MODULE(loc));
    return number != GP_INDEX_NONE ? &facts->modules.items[number] : NULL;
}

const gp_function_info_t *gp_facts_function(const gp_facts_t *facts, gp_loc_t loc)
{
    uint32_t number = gp_table_find(&facts->functions.table, GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(loc)));
    return number != GP_INDEX_NONE ? &facts->functions.items[number] : NULL;
}

// --- records: definitions may come again, and one may be referred to before it comes

static bool facts_is_wanted(const gp_facts_t *facts, uint64_t key)
{
    return facts->wanted == NULL || gp_table_find(facts->wanted, key) != GP_INDEX_NONE;
}

static int facts_on_header(void *context, const gp_file_header_t *header)
{
    gp_facts_t *facts = context;
    facts->header = *header;
    facts->has_header = true;
    return 0;
}

// Is a text there already? Captures that are read as one may have the same, and so has what is read again.
static bool facts_has_meta(const gp_facts_t *facts, const char *key, size_t key_len, const char *value,
                           size_t value_len)
{
    bool is_fact = key_len == strlen(GP_NOT_KNOWN_KEY) && memcmp(key, GP_NOT_KNOWN_KEY, key_len) == 0;
    for (size_t i = 0; (is_fact || facts->wanted != NULL) && i < facts->metas.count; i++) {
        const gp_facts_meta_t *meta = &facts->metas.items[i];
        if (strlen(meta->key) == key_len && memcmp(meta->key, key, key_len) == 0 && meta->value_len == value_len &&
            memcmp(meta->value, value, value_len) == 0)
            return true;
    }
    return false;
}

static int facts_on_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    gp_facts_t *facts = context;
    if (facts_has_meta(facts, key, key_len, value, value_len))
        return 0;
    gp_facts_meta_t meta = {gp_arena_text(&facts->kept, key, key_len), gp_arena_text(&facts->kept, value, value_len),
                            value_len};
    uint32_t number = gp_table_append(&facts->metas.table);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    if (meta.key == NULL || meta.value == NULL) {
        facts->metas.count--;
        return -ENOMEM;
    }
    facts->metas.items[number] = meta;
    if (strcmp(meta.key, "exe") == 0)
        facts->exe = meta.value;
    return 0;
}

static int facts_on_module(void *context, const gp_module_record_t *record, const char *path, size_t path_len)
{
    gp_facts_t *facts = context;
    uint32_t number = gp_table_need(&facts->modules.table, record->id);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_module_info_t *module = &facts->modules.items[number];
    const char *old = module->path;
    bool is_same = old != NULL && strlen(old) == path_len && memcmp(old, path, path_len) == 0;
    *module = (gp_module_info_t){
        .id = record->id,
        .path = is_same ? old : gp_arena_text(&facts->kept, path, path_len),
        .build_id_len = record->build_id_len,
        .start = record->start,
        .end = record->end,
        .bias = record->bias,
    };
    memcpy(module->build_id, record->build_id, sizeof(module->build_id));
    if (module->path != NULL)
        return 0;
    module->path = "";
    return -ENOMEM;
}

static int facts_on_function(void *context, const gp_function_record_t *record, const char *name, const char *file)
{
    gp_facts_t *facts = context;
    uint32_t number = gp_table_find(&facts->functions.table, record->number);
    if (number != GP_INDEX_NONE && facts->wanted != NULL)
        return 0; // never reused in a file
    const char *name_copy = gp_arena_text(&facts->kept, name, record->name_len);
    const char *file_copy = gp_arena_text(&facts->kept, file, record->file_len);
    if (name_copy == NULL || file_copy == NULL)
        return -ENOMEM;
    if (number == GP_INDEX_NONE)
        number = gp_table_add(&facts->functions.table, record->number);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    facts->functions.items[number] = (gp_function_info_t){record->number, record->first_line, name_copy, file_copy};
    return 0;
}

static int facts_on_thread(void *context, const gp_thread_record_t *record)
{
    gp_facts_t *facts = context;
    uint32_t number = gp_table_need(&facts->threads.table, record->index);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    facts->threads.items[number] = *record;
    facts->threads.items[number].name[sizeof(record->name) - 1] = '\0';
    return 0;
}

// Keep the name that a coroutine had, where it had one.
static int facts_keep_name(gp_facts_t *facts, gp_facts_coro_t *coro)
{
    const char *name = coro->record.name;
    uint32_t count = coro->former != NULL ? coro->former->count : 0;
    for (const gp_former_name_t *at = coro->former; at != NULL; at = at->before)
        if (strcmp(at->name, name) == 0)
            return 0;
    if (name[0] == '\0' || count == GP_FORMER_NAMES_MAX)
        return 0;
    gp_former_name_t *former = gp_arena_alloc(&facts->passing, sizeof(*former));
    if (former == NULL)
        return -ENOMEM;
    *former = (gp_former_name_t){gp_arena_text(&facts->passing, name, strlen(name)), coro->former, count + 1};
    coro->former = former;
    return former->name != NULL ? 0 : -ENOMEM;
}

static int facts_on_coro(void *context, const gp_coro_record_t *record)
{
    gp_facts_t *facts = context;
    if (!facts_is_wanted(facts, GP_FACTS_CORO | record->id))
        return 0;
    uint32_t number = gp_table_need(&facts->coros.table, record->id);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_facts_coro_t *coro = &facts->coros.items[number];
    if (coro->defined && strncmp(coro->record.name, record->name, sizeof(record->name)) != 0 &&
        facts_keep_name(facts, coro) < 0)
        return -ENOMEM;
    coro->record = *record;
    coro->record.name[sizeof(record->name) - 1] = '\0';
    coro->defined = true;
    return 0;
}

static int facts_on_origin(void *context, const gp_origin_record_t *record)
{
    gp_facts_t *facts = context;
    if (facts->is_bounded)
        return 0;
    uint32_t coro = gp_table_need(&facts->coros.table, record->coro_id);
    uint32_t stack = gp_table_need(&facts->stacks.table, record->stack_id);
    if (coro == GP_INDEX_NONE || stack == GP_INDEX_NONE)
        return -ENOMEM;
    facts->coros.items[coro].spawn_stack = stack;
    facts->coros.items[coro].region = record->region;
    facts->coros.items[coro].pool = record->pool;
    return 0;
}

static int facts_on_trace(void *context, const gp_trace_record_t *record)
{
    gp_facts_t *facts = context;
    if (record->index == 0 || !facts_is_wanted(facts, GP_FACTS_TRACE | record->index)) // 0: "no trace"
        return 0;
    uint32_t number = gp_table_need(&facts->traces.table, record->index);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    memcpy(facts->traces.items[number].id, record->id, sizeof(record->id));
    facts->traces.items[number].defined = true;
    return 0;
}

static int facts_on_stack(void *context, const gp_stack_record_t *record, const gp_loc_t *frames)
{
    gp_facts_t *facts = context;
    if (!facts_is_wanted(facts, GP_FACTS_STACK | record->id))
        return 0;
    uint32_t most = facts->frames_most, number = gp_table_need(&facts->stacks.table, record->id);
    uint16_t depth = most != 0 && record->depth > most ? (uint16_t)most : record->depth;
    const gp_loc_t *copy = gp_arena_copy(&facts->passing, frames, depth * sizeof(*frames));
    if (number == GP_INDEX_NONE || copy == NULL)
        return -ENOMEM;
    gp_facts_stack_t *stack = &facts->stacks.items[number];
    *stack = (gp_facts_stack_t){record->id, depth, record->flags, true, copy};
    return 0;
}

static int facts_on_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    gp_facts_t *facts = context;
    if (facts->wanted != NULL && record->time_ns < facts->totals.time_ns)
        return 0; // an older one, read again
    facts->totals = *record;
    memset(facts->counters, 0, sizeof(facts->counters));
    for (uint64_t i = 0; i < record->count && i < GP_COUNTER_COUNT; i++)
        facts->counters[i] = values[i];
    gp_facts_seen_at(facts, record->time_ns);
    return 0;
}

#define ON_LAST(name, is_there)                                                                                        \
    static int facts_on_##name(void *context, const gp_##name##_record_t *record)                                      \
    {                                                                                                                  \
        gp_facts_t *facts = context;                                                                                   \
        facts->name = *record;                                                                                         \
        facts->is_there = true;                                                                                        \
        gp_facts_seen_at(facts, record->time_ns);                                                                      \
        return 0;                                                                                                      \
    }
GP_FACTS_LAST(ON_LAST)

#define HANDLER(name, is_there) .name = facts_on_##name,

const gp_reader_handlers_t gp_facts_handlers = {
    .header = facts_on_header,
    .meta = facts_on_meta,
    .module = facts_on_module,
    .function = facts_on_function,
    .thread = facts_on_thread,
    .coro = facts_on_coro,
    .origin = facts_on_origin,
    .trace = facts_on_trace,
    .stack = facts_on_stack,
    .counters = facts_on_counters,
    GP_FACTS_LAST(HANDLER) // the last ones
};
