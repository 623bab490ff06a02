// SPDX-License-Identifier: MIT
#include "ship/rows/capture_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_SIZE = 512 };

int gp_capture_names_put(gp_capture_names_table_t *table, uint64_t number, uint64_t value)
{
    if (table->table.item_bytes == 0)
        *table = (gp_capture_names_table_t)GP_TABLE_SPARSE(gp_capture_names_entry_t, number);
    uint32_t at = gp_table_need(&table->table, number);
    if (at == GP_INDEX_NONE)
        return -ENOMEM;
    table->items[at].value = value;
    return 0;
}

int gp_capture_names_begin(gp_capture_names_t *known, gp_symbolizer_t *symbolizer)
{
    known->names = (gp_namer_t){.facts = &known->facts, .symbolizer = symbolizer, .is_shared = true};
    return gp_facts_init(&known->facts, true);
}

const char *gp_capture_names_text(gp_capture_names_t *known, const char *text)
{
    uint64_t hash = gp_hash_bytes(text, strlen(text)) | 1;
    for (const uint64_t *found; (found = gp_capture_names_get(&known->texts, hash)) != NULL; hash += 2)
        if (strcmp((const char *)(uintptr_t)*found, text) == 0)
            return (const char *)(uintptr_t)*found;
    const char *copy = gp_arena_text(&known->facts.passing, text, strlen(text));
    if (copy == NULL || gp_capture_names_put(&known->texts, hash, (uintptr_t)copy) < 0)
        return NULL;
    return copy;
}

static const char *capture_names_thread_label(const gp_capture_names_t *known, const gp_coro_record_t *coro,
                                              char text[LABEL_SIZE])
{
    uint32_t thread = gp_table_find(&known->facts.threads.table, coro->thread);
    const char *name = thread != GP_INDEX_NONE ? known->facts.threads.items[thread].name : coro->name;
    if (name[0] == '\0')
        name = "unnamed"; // a number would be another one in every process
    snprintf(text, LABEL_SIZE, "[thread %s]", name);
    return text;
}

const char *gp_capture_names_coro(gp_capture_names_t *known, uint64_t id)
{
    uint32_t number = gp_table_find(&known->facts.coros.table, id);
    char text[LABEL_SIZE];
    gp_name_t name;
    if (number == GP_INDEX_NONE)
        return "[unknown]";
    const gp_coro_record_t *coro = &known->facts.coros.items[number].record;
    if (coro->kind == GP_CORO_THREAD)
        return gp_capture_names_text(known, capture_names_thread_label(known, coro, text));
    if (coro->entry != 0 && gp_facts_name(&known->names, coro->entry, &name) == 0 && !name.is_pseudo)
        return gp_capture_names_text(known, gp_symbol_outermost(name.symbol)->function);
    return gp_capture_names_text(known, coro->name[0] != '\0' ? coro->name : "[unnamed]");
}

// Frames of a stack as rows: root first, an inlined function behind the one that it is inlined into.
typedef struct frames {
    gp_row_frame_t *items;
    size_t count, capacity;
} frames_t;

static const char *capture_names_hex(gp_capture_names_t *known, const gp_module_info_t *module)
{
    char text[2 * sizeof(module->build_id) + 1] = "";
    for (size_t i = 0; i < module->build_id_len; i++)
        snprintf(text + 2 * i, 3, "%02x", module->build_id[i]);
    return gp_capture_names_text(known, text);
}

// A function that is inlined, and those around it: the outermost first.
static int capture_names_add_symbol(frames_t *frames, const gp_symbol_t *symbol, gp_row_frame_t *frame)
{
    int result = symbol->outer != NULL ? capture_names_add_symbol(frames, symbol->outer, frame) : 0;
    if (gp_symbol_is_hidden(symbol) || result < 0)
        return result;
    if (gp_grow(&frames->items, &frames->capacity, frames->count, sizeof(*frame)) < 0)
        return -ENOMEM;
    frame->name = symbol->function;
    frame->file = strcmp(symbol->file, symbol->module) != 0 ? symbol->file : "";
    frame->line = symbol->line;
    frame->is_inlined = symbol->outer != NULL;
    frames->items[frames->count++] = *frame;
    return 0;
}

static int capture_names_add_location(gp_capture_names_t *known, frames_t *frames, gp_loc_t loc)
{
    gp_row_frame_t frame = {.module = "", .build = ""};
    gp_name_t name;
    if (gp_facts_name(&known->names, loc, &name) < 0)
        return -ENOMEM;
    bool is_code = name.symbol != &name.made;
    const gp_module_info_t *module = is_code ? gp_facts_module(&known->facts, loc) : NULL;
    if (module != NULL)
        frame.module = module->path;
    if (module != NULL && name.symbol->outer == NULL && strstr(name.symbol->function, "+0x") != NULL) {
        frame.address = GP_LOC_OFFSET(loc); // no name
        frame.build = capture_names_hex(known, module);
        if (frame.build == NULL)
            return -ENOMEM;
    }
    return capture_names_add_symbol(frames, name.symbol, &frame);
}

static uint64_t capture_names_hash_text(uint64_t hash, const char *text)
{
    return gp_hash_more(hash, gp_hash_bytes(text, strlen(text)));
}

// Equal frames of any process, host and day have one id.
static uint64_t capture_names_hash_frames(const frames_t *frames)
{
    uint64_t hash = frames->count;
    for (size_t i = 0; i < frames->count; i++) {
        const gp_row_frame_t *frame = &frames->items[i];
        hash = capture_names_hash_text(capture_names_hash_text(capture_names_hash_text(hash, frame->name), frame->file),
                                       frame->module);
        hash = gp_hash_more(gp_hash_more(capture_names_hash_text(hash, frame->build), frame->address),
                            (uint64_t)frame->line << 1 | frame->is_inlined);
    }
    return hash != 0 ? hash : 1;
}

// Names are texts of the symbolizer's, the facts' or of this file: they stay where they are.
static const gp_row_stack_t *capture_names_make_row(gp_capture_names_t *known, const gp_facts_stack_t *stack)
{
    frames_t frames = {0};
    int result = 0;
    gp_row_stack_t *row = gp_arena_alloc(&known->facts.passing, sizeof(*row));
    for (uint32_t i = stack->depth; i > 0 && result == 0; i--)
        result = capture_names_add_location(known, &frames, stack->frames[i - 1]);
    const gp_row_frame_t *copy =
        result == 0 ? gp_arena_copy(&known->facts.passing, frames.items, frames.count * sizeof(*copy)) : NULL;
    bool is_made = row != NULL && result == 0 && (copy != NULL || frames.count == 0);
    if (is_made)
        *row = (gp_row_stack_t){capture_names_hash_frames(&frames), copy, (uint32_t)frames.count};
    free(frames.items);
    return is_made && gp_capture_names_put(&known->rows, stack->id, (uintptr_t)row) == 0 ? row : NULL;
}

const gp_row_stack_t *gp_capture_names_row(gp_capture_names_t *known, uint32_t stack_id)
{
    static const gp_row_frame_t lost_frame = {.name = "[lost stack]", .file = "", .module = "", .build = ""};
    static const gp_row_stack_t lost = {1, &lost_frame, 1}, none = {0};
    const uint64_t *found = gp_capture_names_get(&known->rows, stack_id);
    uint32_t number = gp_table_find(&known->facts.stacks.table, stack_id);
    if (found != NULL)
        return (const gp_row_stack_t *)(uintptr_t)*found;
    if (stack_id == 0 || number == GP_INDEX_NONE)
        return stack_id == 0 ? &none : &lost;
    return capture_names_make_row(known, &known->facts.stacks.items[number]);
}

static void capture_names_forget(gp_capture_names_t *known)
{
    gp_capture_names_clear(&known->rows);
    gp_capture_names_clear(&known->endpoints);
    gp_capture_names_clear(&known->sums);
    gp_capture_names_clear(&known->texts);
    known->has_sums = false;
    gp_namer_forget(&known->names);
}

bool gp_capture_names_trim(gp_capture_names_t *known, bool anyway)
{
    size_t bytes = gp_facts_passing_bytes(&known->facts) + gp_table_bytes(&known->rows.table) +
                   gp_table_bytes(&known->endpoints.table) + gp_table_bytes(&known->sums.table) +
                   gp_table_bytes(&known->texts.table);
    if (known->names.facts == NULL || (!anyway && bytes < GP_KNOWN_MAX))
        return false;
    capture_names_forget(known);
    gp_facts_drop(&known->facts);
    return true;
}

void gp_capture_names_free(gp_capture_names_t *known)
{
    capture_names_forget(known);
    gp_facts_free(&known->facts);
    *known = (gp_capture_names_t){0};
}
