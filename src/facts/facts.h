// SPDX-License-Identifier: MIT
// Definitions of a capture: its process, modules, functions, threads, coroutines, traces and stacks.
//
// Model: gp_facts_handlers fill the tables as the capture is read. Records refer to definitions by ids, tables by
// numbers; a reference to what was lost with a damaged chunk gets a placeholder, so that no time disappears. Modules,
// functions, threads and texts are few. Coroutines, traces and stacks of a long-running process come without end: a
// follower drops them when they are many (gp_facts_drop()), and reads the ones it meets again from the file (`wanted`).
// So a capture of any length takes bounded memory.
//
// Order of calls: init -> handlers, look-ups, drops in any order -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "base/memory.h"
#include "base/table.h"
#include "capture/read/reader.h"
#include "model/module_info.h"

enum { GP_FORMER_NAMES_MAX = 16 };

typedef struct gp_former_name { // of a coroutine that was renamed
    const char *name;
    const struct gp_former_name *before;
    uint32_t count; // former names, this one included
} gp_former_name_t;

typedef struct gp_facts_coro {
    gp_coro_record_t record; // zeros but the id when its definition was lost; with its last name
    bool defined;
    uint32_t spawn_stack; // number of the stack at which it was created; 0 = not known
    uint32_t region;      // enum gp_region_kind bits
    gp_loc_t pool;        // of a call that was handed to a pool of threads, as in gp_origin_record_t; 0 = it is none
    const gp_former_name_t *former; // the latest, at most GP_FORMER_NAMES_MAX; NULL = it was never renamed
} gp_facts_coro_t;

typedef struct gp_facts_trace { // number 0 is "no trace"
    uint32_t index;             // in the capture
    bool defined;
    uint8_t id[16];
    uint32_t coros; // how many coroutines worked for it, where that is summed up
} gp_facts_trace_t;

typedef struct gp_facts_stack { // number 0 is "no stack"
    uint32_t id;
    uint16_t depth, flags;
    bool defined;
    const gp_loc_t *frames; // gp_loc_t[depth], innermost first
} gp_facts_stack_t;

typedef struct gp_facts_meta { // a text of the capture: "cmdline", "hostname", ...
    const char *key, *value;
    size_t value_len; // "cmdline" has NULs between its arguments
} gp_facts_meta_t;

// Records of which the last one is kept as it is: X(name, is there one?), both are fields of gp_facts_t.
#define GP_FACTS_LAST(X) X(end, ended)

typedef struct gp_facts {
    gp_file_header_t header;
    const char *exe; // "" when unknown
    GP_TABLE(gp_facts_meta_t) metas;
    GP_TABLE(gp_module_info_t) modules;
    GP_TABLE(gp_function_info_t) functions;
    GP_TABLE(gp_thread_record_t) threads;
    GP_TABLE(gp_facts_coro_t) coros;
    GP_TABLE(gp_facts_trace_t) traces;
    GP_TABLE(gp_facts_stack_t) stacks;
    gp_counters_record_t totals; // of the last counters record; zeros when there was none
    uint64_t counters[GP_COUNTER_COUNT];
#define GP_FACTS_MEMBER(name, is_there)                                                                                \
    gp_##name##_record_t name;                                                                                         \
    bool is_there;
    GP_FACTS_LAST(GP_FACTS_MEMBER)
#undef GP_FACTS_MEMBER
    uint64_t end_ns; // the latest time seen
    bool has_header, is_bounded;
    uint32_t frames_most; // innermost ones of a stack that are kept; 0 = all
    gp_arena_t kept;      // texts of what stays
    gp_arena_t passing;   // of what gp_facts_drop() drops
    // What is read again: ids of coroutines, traces and stacks by GP_FACTS_CORO and the others; NULL = all is read.
    const gp_table_t *wanted;
} gp_facts_t;

// Ids of all three in one table.
#define GP_FACTS_CORO  (1ull << 62)
#define GP_FACTS_TRACE (2ull << 62)
#define GP_FACTS_STACK (3ull << 62)

// The context is the gp_facts_t.
extern const gp_reader_handlers_t gp_facts_handlers;

// Begin with nothing. Returns 0 or -ENOMEM.
//   is_bounded: it is going to be dropped and read again.
int gp_facts_init(gp_facts_t *facts, bool is_bounded);

// Drop coroutines, traces and stacks. Returns 0 or -ENOMEM.
int gp_facts_drop(gp_facts_t *facts);
// The memory that these take.
size_t gp_facts_passing_bytes(const gp_facts_t *facts);

void gp_facts_free(gp_facts_t *facts);

// The last text of a key; NULL when there is none.
const gp_facts_meta_t *gp_facts_meta(const gp_facts_t *facts, const char *key);

// The module of a location, the function of a location of a language; NULL when it is not known.
const gp_module_info_t *gp_facts_module(const gp_facts_t *facts, gp_loc_t loc);
const gp_function_info_t *gp_facts_function(const gp_facts_t *facts, gp_loc_t loc);

static inline void gp_facts_seen_at(gp_facts_t *facts, uint64_t time_ns)
{
    facts->end_ns = time_ns > facts->end_ns ? time_ns : facts->end_ns;
}
