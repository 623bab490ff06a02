// SPDX-License-Identifier: MIT
#include "traces/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/write/text.h"

// Hex digits and dashes, as they come. Returns how many digits there are; 0 where anything else is.
static size_t spans_read_digits(const char *text, gp_id128_t *id)
{
    size_t digits = 0;
    for (; *text != '\0'; text++) {
        unsigned value;
        if (*text == '-')
            continue;
        if (*text >= '0' && *text <= '9')
            value = (unsigned)(*text - '0');
        else if ((*text | 0x20) >= 'a' && (*text | 0x20) <= 'f')
            value = (unsigned)((*text | 0x20) - 'a') + 10;
        else
            return 0;
        id->hi = id->hi << 4 | id->lo >> 60;
        id->lo = id->lo << 4 | value;
        digits++;
    }
    return digits;
}

bool gp_id128_is_form(const char *text)
{
    gp_id128_t id = {0};
    size_t len = text != NULL ? strlen(text) : 0, digits = len > 0 ? spans_read_digits(text, &id) : 0;
    bool is_uuid = len == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
    return (digits == len && (len == 16 || len == 32)) || (is_uuid && digits == 32);
}

gp_id128_t gp_id128_parse(const char *text)
{
    gp_id128_t id = {0};
    if (text == NULL || text[0] == '\0')
        return id;
    if (gp_id128_is_form(text)) {
        spans_read_digits(text, &id);
        return id;
    }
    size_t len = strlen(text);
    id.hi = gp_hash_bytes(text, len);
    id.lo = gp_hash_more(id.hi, len) | 1; // never none
    return id;
}

const char *gp_id128_of_trace(gp_id128_t id, char text[GP_ID128_SIZE])
{
    snprintf(text, GP_ID128_SIZE, "%016" PRIx64 "%016" PRIx64, id.hi, id.lo);
    return text;
}

const char *gp_id128_of_span(gp_id128_t id, char text[GP_ID128_SIZE])
{
    if (id.hi == 0)
        snprintf(text, GP_ID128_SIZE, "%016" PRIx64, id.lo);
    else
        snprintf(text, GP_ID128_SIZE, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
                 id.hi >> 32, id.hi >> 16 & 0xffff, id.hi & 0xffff, id.lo >> 48, id.lo & 0xffffffffffff);
    return text;
}

const char *gp_spans_text(gp_spans_t *set, const char *text)
{
    size_t len = strlen(text);
    char *copy = gp_arena_alloc(&set->arena, GP_TEXT_GROWTH * len + 1);
    if (copy != NULL)
        gp_text_repair(copy, text);
    return copy;
}

static bool spans_same_process(const void *owner, uint32_t number, const void *key)
{
    const gp_tree_process_t *a = &((const gp_spans_t *)owner)->processes[number], *b = key;
    return a->pid == b->pid && strcmp(a->service, b->service) == 0 && strcmp(a->host, b->host) == 0;
}

uint32_t gp_spans_process(gp_spans_t *set, const char *service, const char *host, uint64_t pid)
{
    gp_tree_process_t key = {.service = service != NULL ? service : "", .host = host != NULL ? host : "", .pid = pid};
    uint64_t hash = gp_hash_more(gp_hash_bytes(key.service, strlen(key.service)), pid);
    uint32_t number = gp_index_find(&set->process_index, hash, spans_same_process, set, &key);
    if (number != GP_INDEX_NONE)
        return number;
    key.service = gp_arena_text(&set->arena, key.service, strlen(key.service));
    key.host = gp_arena_text(&set->arena, key.host, strlen(key.host));
    if (key.service == NULL || key.host == NULL ||
        gp_grow(&set->processes, &set->process_capacity, set->process_count, sizeof(key)) < 0 ||
        gp_index_add(&set->process_index, hash, (uint32_t)set->process_count) < 0)
        return GP_NO_SPAN;
    set->processes[set->process_count] = key;
    return (uint32_t)set->process_count++;
}

static bool spans_same_trace(const void *owner, uint32_t number, const void *key)
{
    const gp_id128_t *a = &((const gp_spans_t *)owner)->traces[number].id, *b = key;
    return a->hi == b->hi && a->lo == b->lo;
}

uint32_t gp_spans_trace(gp_spans_t *set, gp_id128_t id, const char *text)
{
    uint64_t hash = gp_hash_more(id.hi, id.lo);
    uint32_t number = gp_index_find(&set->trace_index, hash, spans_same_trace, set, &id);
    if (number != GP_INDEX_NONE)
        return number;
    gp_tree_trace_t trace = {.id = id, .root = GP_NO_SPAN};
    if (text != NULL && !gp_id128_is_form(text) && (trace.text = gp_spans_text(set, text)) == NULL)
        return GP_NO_SPAN;
    if (gp_grow(&set->traces, &set->trace_capacity, set->trace_count, sizeof(trace)) < 0 ||
        gp_index_add(&set->trace_index, hash, (uint32_t)set->trace_count) < 0)
        return GP_NO_SPAN;
    set->traces[set->trace_count] = trace;
    return (uint32_t)set->trace_count++;
}

typedef struct span_key {
    uint32_t trace;
    gp_id128_t id;
} span_key_t;

static bool spans_same_span(const void *owner, uint32_t number, const void *key)
{
    const gp_tree_span_t *span = &((const gp_spans_t *)owner)->items[number];
    const span_key_t *wanted = key;
    return span->trace == wanted->trace && span->id.lo == wanted->id.lo &&
           (span->id.hi == wanted->id.hi || span->id.hi == 0 || wanted->id.hi == 0);
}

uint32_t gp_spans_find(const gp_spans_t *set, uint32_t trace, gp_id128_t id)
{
    span_key_t key = {trace, id};
    return gp_index_find(&set->span_index, gp_hash_more(trace, id.lo), spans_same_span, set, &key);
}

// Is `point` OSProfiler's record of a span that greenprof has, too? Such a record has greenprof's id, and no process.
static bool spans_is_point_of(const gp_spans_t *set, const gp_tree_span_t *point, const gp_tree_span_t *span)
{
    return point->id.hi == 0 && set->processes[point->process].pid == 0 && (point->record.flags & GP_SPAN_NO_TIMES) &&
           set->processes[span->process].pid != 0;
}

// Is it the same span by another source? Sources write times in units of their own, and may name a service in two ways.
static bool spans_is_same(const gp_spans_t *set, const gp_tree_span_t *a, const gp_tree_span_t *b)
{
    if (spans_is_point_of(set, a, b) || spans_is_point_of(set, b, a))
        return a->id.hi == b->id.hi;
    return a->id.hi == b->id.hi && set->processes[a->process].pid == set->processes[b->process].pid &&
           strcmp(a->kind, b->kind) == 0 && strcmp(a->record.name, b->record.name) == 0;
}

// The worth of a record, among several of a span: most with an end and times; OSProfiler's least.
static unsigned spans_worth(const gp_spans_t *set, const gp_tree_span_t *span)
{
    return (set->processes[span->process].pid != 0 ? 4u : 0u) + (span->record.flags & GP_SPAN_OPEN ? 0u : 2u) +
           (span->record.flags & GP_SPAN_NO_TIMES ? 0u : 1u);
}

static void spans_complete(const gp_spans_t *set, gp_tree_span_t *there, const gp_tree_span_t *span)
{
    const char *profile = there->profile != NULL ? there->profile : span->profile;
    const char *stack = there->record.stack != NULL ? there->record.stack : span->record.stack;
    const gp_tree_work_t *work = there->work != NULL ? there->work : span->work;
    if (spans_worth(set, span) > spans_worth(set, there))
        *there = *span;
    there->profile = profile;
    there->record.stack = stack;
    there->work = work;
}

uint32_t gp_spans_add(gp_spans_t *set, const gp_tree_span_t *given)
{
    gp_tree_span_t shortened = *given;
    const gp_tree_span_t *span = &shortened;
    if (gp_span_shorten(set, &shortened.record) < 0)
        return GP_NO_SPAN;
    uint32_t there = gp_spans_find(set, span->trace, span->id), flags = 0;
    if (there != GP_NO_SPAN && spans_is_same(set, &set->items[there], span)) {
        spans_complete(set, &set->items[there], span);
        set->merged++;
        return there;
    }
    if (there != GP_NO_SPAN)
        flags = GP_TREE_TWICE;
    if (set->count >= GP_NO_SPAN - 1 || gp_grow(&set->items, &set->capacity, set->count, sizeof(*span)) < 0)
        return GP_NO_SPAN;
    if (there == GP_NO_SPAN &&
        gp_index_add(&set->span_index, gp_hash_more(span->trace, span->id.lo), (uint32_t)set->count) < 0)
        return GP_NO_SPAN;
    set->items[set->count] = *span;
    set->items[set->count].record.flags |= flags;
    return (uint32_t)set->count++;
}

void gp_spans_free(gp_spans_t *set)
{
    free(set->items);
    free(set->processes);
    free(set->traces);
    free(set->order);
    gp_index_free(&set->span_index);
    gp_index_free(&set->process_index);
    gp_index_free(&set->trace_index);
    gp_arena_free(&set->arena);
    memset(set, 0, sizeof(*set));
}
