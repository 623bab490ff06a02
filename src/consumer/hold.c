// SPDX-License-Identifier: MIT
#include "consumer/hold.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"

enum {
    TRACES = 4096, // a power of two
    WAYS = 8,      // places of a trace
    BYTES_MAX = 8 << 20,
};

typedef struct held_span {
    struct held_span *next;
    gp_packed_span_t packed;
} held_span_t;

typedef struct gp_held_trace {
    uint8_t trace[16];
    uint64_t used; // hold->clock when something came last; 0 = free
    bool is_slow;  // a request of it was: all spans go through
    held_span_t *first, **last;
} trace_t;

void gp_hold_begin(gp_hold_t *hold, uint64_t least_ns)
{
    *hold = (gp_hold_t){.least_ns = least_ns};
}

static uint64_t hold_forget(gp_hold_t *hold, trace_t *held)
{
    uint64_t spans = 0;
    for (held_span_t *span = held->first, *next; span != NULL; span = next, spans++) {
        next = span->next;
        hold->bytes -= span->packed.bytes;
        free(span);
    }
    held->first = NULL;
    held->last = &held->first;
    return spans;
}

static trace_t *hold_oldest_of(trace_t *ways, size_t count)
{
    trace_t *oldest = ways;
    for (size_t i = 1; i < count; i++)
        if (ways[i].used < oldest->used)
            oldest = &ways[i];
    return oldest;
}

// The place of a trace; of those that it can have, the one unused for the longest time gives way.
static trace_t *hold_place(gp_hold_t *hold, const uint8_t trace[16], uint64_t *left_out)
{
    size_t first = (gp_hash_bytes(trace, 16) & (TRACES / WAYS - 1)) * WAYS;
    trace_t *ways = hold->table + first;
    for (size_t i = 0; i < WAYS; i++)
        if (ways[i].used != 0 && memcmp(ways[i].trace, trace, 16) == 0)
            return &ways[i];
    trace_t *held = hold_oldest_of(ways, WAYS);
    *left_out += hold_forget(hold, held);
    memcpy(held->trace, trace, 16);
    held->is_slow = false;
    return held;
}

static trace_t *hold_oldest_with_spans(const gp_hold_t *hold)
{
    trace_t *oldest = NULL;
    for (size_t i = 0; i < TRACES; i++)
        if (hold->table[i].first != NULL && (oldest == NULL || hold->table[i].used < oldest->used))
            oldest = &hold->table[i];
    return oldest;
}

static uint64_t hold_keep(gp_hold_t *hold, trace_t *held, const gp_packed_span_t *packed)
{
    uint64_t left_out = 0;
    for (trace_t *oldest; hold->bytes + packed->bytes > BYTES_MAX && (oldest = hold_oldest_with_spans(hold)) != NULL;)
        left_out += hold_forget(hold, oldest);
    held_span_t *span = malloc(offsetof(held_span_t, packed) + packed->bytes);
    if (span == NULL)
        return left_out + 1;
    span->next = NULL;
    memcpy(&span->packed, packed, packed->bytes);
    *held->last = span;
    held->last = &span->next;
    hold->bytes += packed->bytes;
    return left_out;
}

static bool hold_is_request(const gp_packed_span_t *packed)
{
    return packed->parent_id == 0 || (packed->flags & PROF_SPAN_RECORD_REMOTE_PARENT);
}

static bool hold_is_slow(const gp_hold_t *hold, const gp_packed_span_t *packed)
{
    uint64_t end = packed->end_unix_ns, start = packed->start_unix_ns;
    return (packed->flags & PROF_SPAN_RECORD_ASKED) || (end > start && end - start >= hold->least_ns);
}

uint64_t gp_hold_add(gp_hold_t *hold, const gp_packed_span_t *packed,
                     void (*give)(void *context, const gp_packed_span_t *), void *context)
{
    uint64_t left_out = 0;
    if (hold->table == NULL && (hold->table = calloc(TRACES, sizeof(trace_t))) == NULL)
        return 1;
    trace_t *held = hold_place(hold, packed->trace, &left_out);
    if (held->last == NULL)
        held->last = &held->first;
    held->used = ++hold->clock;
    // -Wanalyzer-malloc-leak: the table has what is kept.
    if (!held->is_slow && !hold_is_request(packed))
        return left_out + hold_keep(hold, held, packed);
    if (!held->is_slow && !hold_is_slow(hold, packed))
        return left_out + hold_forget(hold, held) + 1;
    held->is_slow = true;
    for (const held_span_t *span = held->first; span != NULL; span = span->next)
        give(context, &span->packed);
    hold_forget(hold, held);
    give(context, packed);
    return left_out;
}

uint64_t gp_hold_end(gp_hold_t *hold)
{
    uint64_t left_out = 0;
    for (size_t i = 0; hold->table != NULL && i < TRACES; i++)
        left_out += hold_forget(hold, &hold->table[i]);
    free(hold->table);
    hold->table = NULL;
    return left_out;
}
