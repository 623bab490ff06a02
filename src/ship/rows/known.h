// SPDX-License-Identifier: MIT
// What a capture defines, as far as rows need it: texts, frames, ids by number.
//
// Model: modules, threads, functions and texts about the process are few and kept. Coroutines, traces and stacks come
// without end in a process that runs for long: what is kept of them is dropped when it is more than GP_KNOWN_MAX bytes
// (gp_known_trim()), and read again from the file when a record refers to it. So a capture of any length takes bounded
// memory.
//
// Order of calls: handlers of gp_known_handlers() by gp_reader_read_part() -> any look-up -> free. Threads: one at a
// time. Signals: not safe.
#pragma once

#include "base/id_map.h"
#include "base/index.h"
#include "base/memory.h"
#include "capture/read/reader.h"
#include "model/module_info.h"
#include "ship/rows/row.h"
#include "symbol/symbolizer.h"

enum { GP_KNOWN_MAX = 64 << 20 };

typedef struct gp_known_entry { // of an open table by number
    uint64_t number;            // 0 = empty
    uint64_t value;
} gp_known_entry_t;

typedef struct gp_known_table { // zero-initialized = empty
    gp_known_entry_t *entries;
    size_t size, count; // size: power of two, or 0
} gp_known_table_t;

// The value of a number; NULL = it is not there. Valid until the next put.
uint64_t *gp_known_get(const gp_known_table_t *table, uint64_t number);
// Returns 0 or -ENOMEM.
int gp_known_put(gp_known_table_t *table, uint64_t number, uint64_t value);
void gp_known_clear(gp_known_table_t *table);

typedef struct gp_known_stack {
    uint32_t depth;
    bool is_named; // `row` is made
    gp_row_stack_t row;
    gp_loc_t frames[]; // [depth], innermost first
} gp_known_stack_t;

// What coroutines did for a trace since the request of it that ended last: differences modulo 2^64, as the records.
typedef struct gp_known_sum {
    uint64_t cpu_ns, slice_ns, blocked_ns, ready_ns, parked_ns, waiting_ns;
    bool has_history; // all of it: the file was read again for it, or there is none
    bool is_given;    // in a piece: a request has it
    bool is_shared;   // read again: a request before has a part of it, nothing says which
} gp_known_sum_t;

typedef struct gp_known {
    gp_file_header_t header;
    bool has_header, ended, has_requests, has_hogs;
    uint64_t end_ns; // the latest time seen
    // Kept.
    gp_arena_t texts;
    gp_row_pair_t *metas;
    size_t meta_count, meta_capacity;
    gp_module_info_t *modules; // [module_count]
    uint32_t *module_numbers;  // [module_count], the symbolizer's; 0 = not asked for yet, else plus 1
    size_t module_count, module_capacity, number_capacity;
    gp_known_table_t module_table, thread_table, function_table;
    gp_thread_record_t *threads;
    size_t thread_count, thread_capacity;
    gp_function_info_t *functions;
    size_t function_count, function_capacity;
    gp_counters_record_t totals;
    uint64_t counters[GP_COUNTER_COUNT];
    // Dropped and read again.
    gp_arena_t passing;
    gp_known_table_t coros;     // to const char *: the coroutine's label
    gp_known_table_t traces;    // to const uint8_t *: [16]
    gp_known_table_t stacks;    // to gp_known_stack_t *
    gp_known_table_t endpoints; // by trace, to const char *: of the request that ended last
    gp_known_table_t sums;      // by trace, to gp_known_sum_t *
    bool has_sums;
    uint64_t sums_from, sums_from_ns; // they are of what is behind that byte, and is known for what begins then
    gp_known_table_t labels;          // texts that are shared, by hash
    // What is read now.
    const gp_known_table_t *wanted; // GP_KNOWN_... | number: only these; NULL = all
    gp_symbolizer_t *symbolizer;    // the caller's
    gp_symbolizer_t *jit;           // for code without a module, which is this process' own; NULL = none yet
    int error;
} gp_known_t;

// Numbers of coroutines, traces and stacks in one table.
#define GP_KNOWN_CORO  (1ull << 62)
#define GP_KNOWN_TRACE (2ull << 62)
#define GP_KNOWN_STACK (3ull << 62)
#define GP_KNOWN_SUM   (1ull << 61) // of a trace

// Handlers for all that is kept here; the context is the gp_known_t. `samples` is not among them.
extern const gp_reader_handlers_t gp_known_handlers;

// To the sum of its trace, if that is wanted.
int gp_known_add_ledger(void *known, const gp_ledger_record_t *record);
int gp_known_see_span(void *known, const gp_span_record_t *span, const char *name, const char *fields);

// A text of the capture; NULL.
const char *gp_known_meta(const gp_known_t *known, const char *key, size_t *len);

// A copy of a text that is shared by all that ask for the same, as long as what is dropped. NULL when memory is short.
const char *gp_known_text(gp_known_t *known, const char *text);

// The row of a stack, named by now; NULL when memory is short.
const gp_row_stack_t *gp_known_row(gp_known_t *known, gp_known_stack_t *stack);

// Drop what is read again when needed, if it has become much (or anyway: what was made by a symbolizer that is going).
bool gp_known_trim(gp_known_t *known, bool anyway);

void gp_known_free(gp_known_t *known);
