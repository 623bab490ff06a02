// SPDX-License-Identifier: MIT
// Facts of a capture that rows need: names of coroutines and of stacks, ids of traces, sums of requests.
//
// Model: its definitions are bounded (facts/facts.h). They are dropped, with what is made of them, when they are more
// than GP_KNOWN_MAX bytes (gp_capture_names_trim()), and read again from the file when a record refers to them.
//
// Order of calls: begin -> gp_facts_handlers with `facts` and gp_capture_names_sums by gp_reader_take_part() -> any
// look-up -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "facts/names.h"
#include "ship/rows/row.h"

enum { GP_KNOWN_MAX = 64 << 20 };

typedef struct gp_capture_names_entry {
    uint64_t number, value;
} gp_capture_names_entry_t;
typedef GP_TABLE(gp_capture_names_entry_t) gp_capture_names_table_t; // zero-initialized = empty

// The value of a number; NULL = it is not there. Valid until the next put.
static inline uint64_t *gp_capture_names_get(const gp_capture_names_table_t *table, uint64_t number)
{
    uint32_t at = gp_table_find(&table->table, number);
    return at != GP_INDEX_NONE ? &table->items[at].value : NULL;
}

// Returns 0 or -ENOMEM.
int gp_capture_names_put(gp_capture_names_table_t *table, uint64_t number, uint64_t value);

static inline void gp_capture_names_clear(gp_capture_names_table_t *table)
{
    gp_table_free(&table->table);
}

// Sums of a trace since its latest request ended: differences modulo 2^64, as the records.
typedef struct gp_capture_names_sum {
    uint64_t cpu_ns, slice_ns, blocked_ns, ready_ns, parked_ns, waiting_ns;
    bool has_history; // all of it: the file was read again for it, or there is none
    bool is_given;    // in a piece: a request has it
    bool is_shared;   // read again: a request before has a part of it, nothing says which
} gp_capture_names_sum_t;

typedef struct gp_capture_names {
    gp_facts_t facts;
    gp_namer_t names;
    bool has_requests, has_hogs;
    // Dropped with coroutines, traces and stacks, whose memory they are in.
    gp_capture_names_table_t rows;      // by stack, to gp_row_stack_t *
    gp_capture_names_table_t endpoints; // by trace, to const char *: of the request that ended last
    gp_capture_names_table_t sums;      // by trace, to gp_capture_names_sum_t *
    gp_capture_names_table_t texts;     // that are shared, by hash
    bool has_sums;
    uint64_t sums_from, sums_from_ns; // they are of what is behind that byte, and is known for what begins then
} gp_capture_names_t;

// The kind of a trace's number in the table of wanted ids.
#define GP_KNOWN_SUM (1ull << 61)

// Ledgers and requests to the sums of their traces, where these are wanted. The context is the gp_capture_names_t.
extern const gp_reader_handlers_t gp_capture_names_sums;

// Begin with a zeroed one. Returns 0 or -ENOMEM.
int gp_capture_names_begin(gp_capture_names_t *known, gp_symbolizer_t *symbolizer);

// A shared copy of a text, which lives until coroutines, traces and stacks are dropped. NULL when memory is short.
const char *gp_capture_names_text(gp_capture_names_t *known, const char *text);

// A coroutine's purpose rather than its name, which often has a number in it. A shared text, as above.
const char *gp_capture_names_coro(gp_capture_names_t *known, uint64_t id);

// The row of a stack, named by now; NULL when memory is short.
const gp_row_stack_t *gp_capture_names_row(gp_capture_names_t *known, uint32_t stack_id);

// Drop what is read again when needed, if it has become much (or anyway: what was made by a symbolizer that is going).
bool gp_capture_names_trim(gp_capture_names_t *known, bool anyway);

void gp_capture_names_free(gp_capture_names_t *known);
