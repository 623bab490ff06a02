// SPDX-License-Identifier: MIT
// Spans of any number of services, and the trees of calls that they make.
//
// Model: sources (read_*.c) add spans to one set, in any order; gp_spans_link() then finds parents, aligns the clocks
// of the processes and puts each trace in the order of its tree. Input is not trusted: spans may come twice, their
// parents may be missing, be themselves or lie in a circle, and ends may lie before beginnings. Nothing here recurses,
// so that trees may be as deep as there are spans. All texts are the set's.
//
// Order of calls: adding -> gp_spans_link() -> writing -> gp_spans_free(). Threads: one at a time. Signals: not safe.
#pragma once

#include "base/index.h"
#include "base/memory.h"
#include "greenprof/consumer.h"
#include "model/span.h"

#define GP_NO_SPAN UINT32_MAX

// A trace's or a span's id: hi is 0 for spans of greenprof's own: their ids have 64 bits. Both 0 = none.
typedef struct gp_id128 {
    uint64_t hi, lo;
} gp_id128_t;

typedef struct gp_tree_work { // of all coroutines of a request together, in its process, ns
    uint64_t coroutines, cpu, ready, parked, blocked, preempted, waiting;
} gp_tree_work_t;

typedef struct gp_tree_span {
    // Moments by the clock of its process, times, name, fields, stack and flags: enum gp_span_flag, and what
    // gp_spans_link() finds out. Here is what of it may be of other profilers, and is wider:
    prof_span_record_t record;
    gp_id128_t id, parent_id;
    uint32_t trace, process;    // numbers in the set
    const char *kind;           // "rest_call"; never NULL, nor is the name
    const gp_tree_work_t *work; // of a request's span; NULL = not known
    const char *profile;        // folded stacks that ran for it, its children in its process included; or NULL
    // By gp_spans_link():
    uint32_t parent, first_child, next_sibling, depth; // GP_NO_SPAN = none
    int64_t from_ns, to_ns;                            // aligned
    uint64_t self_ns;                                  // of its duration, when none of its children was open
    uint64_t critical_ns;                              // its own time on the critical path
} gp_tree_span_t;

enum gp_clock_state {
    GP_CLOCK_ALONE,  // nothing to compare it with
    GP_CLOCK_AGREES, // no dispatch lies outside its call: left alone
    GP_CLOCK_MOVED,
    GP_CLOCK_CONTRADICTS // no offset puts every dispatch within its call
};

typedef struct gp_tree_process {
    const char *service, *host;
    uint64_t pid; // 0 = not known
    // By gp_spans_link():
    enum gp_clock_state clock;
    int64_t offset_ns;  // to be added to its times
    uint64_t within_ns; // the true offset is no further away than that from it, if the pairs are right
    uint32_t pairs;     // of a call and a dispatch that it rests on
} gp_tree_process_t;

typedef struct gp_tree_trace {
    gp_id128_t id;
    const char *text; // as it was given; NULL where it is the id's own form
    // By gp_spans_link():
    uint32_t first, count; // of gp_spans_t.order
    uint32_t root;         // that which began first
    int64_t from_ns, to_ns;
    uint32_t services;
    bool failed;
} gp_tree_trace_t;

typedef struct gp_spans { // zero-initialized = empty
    gp_tree_span_t *items;
    size_t count, capacity;
    gp_tree_process_t *processes;
    size_t process_count, process_capacity;
    gp_tree_trace_t *traces;
    size_t trace_count, trace_capacity;
    uint32_t *order; // span numbers, trace by trace, parents before their children, by start
    // What was wrong:
    size_t unreadable; // records that are no spans
    size_t merged;     // spans that came from two sources
    gp_index_t span_index, process_index, trace_index;
    gp_arena_t arena;
} gp_spans_t;

enum { GP_SPANS_ERROR_SIZE = 256 };

// Read an id: 16 or 32 hex digits or a UUID; of any other text, its hash. "" and NULL are no id.
gp_id128_t gp_id128_parse(const char *text);
bool gp_id128_is_form(const char *text); // is the text of these forms?

// Write an id: 32 hex digits of a trace, 16 of a span of greenprof's own, else a UUID. Returns `text`.
enum { GP_ID128_SIZE = 37 };
const char *gp_id128_of_trace(gp_id128_t id, char text[GP_ID128_SIZE]);
const char *gp_id128_of_span(gp_id128_t id, char text[GP_ID128_SIZE]);

static inline bool gp_id128_is_none(gp_id128_t id)
{
    return id.hi == 0 && id.lo == 0;
}

// Copy a text into the set, repaired to UTF-8. Returns NULL when memory is short.
const char *gp_spans_text(gp_spans_t *set, const char *text);

// Find or add. Returns the number, or GP_NO_SPAN when memory is short.
//   service, host: copied. NULL = "".
//   text: the id as it was given; NULL, or one of the forms of ids, is not kept.
uint32_t gp_spans_process(gp_spans_t *set, const char *service, const char *host, uint64_t pid);
uint32_t gp_spans_trace(gp_spans_t *set, gp_id128_t id, const char *text);

// Add a span, or complete the same one of another source.
//   given: its texts are the set's.
// Returns its number, or GP_NO_SPAN when memory is short.
uint32_t gp_spans_add(gp_spans_t *set, const gp_tree_span_t *given);

// Let a name be no longer than a line has room for; all of it is then in a field: what has it already, or `name`. By
// gp_spans_add(). Returns 0 or -ENOMEM.
int gp_span_shorten(gp_spans_t *set, prof_span_record_t *span);

// Find a span. A 64-bit id also finds the UUID that ends in it, and the other way round.
uint32_t gp_spans_find(const gp_spans_t *set, uint32_t trace, gp_id128_t id);

// Make the trees. Returns 0 or -ENOMEM.
int gp_spans_link(gp_spans_t *set);

// Its parts. gp_spans_align() needs parents and sets from_ns and to_ns; gp_spans_mark_critical() needs all else.
int gp_spans_align(gp_spans_t *set);
int gp_spans_mark_critical(gp_spans_t *set);

static inline int64_t gp_tree_start_ns(const gp_tree_span_t *span)
{
    return (int64_t)span->record.start_unix_ns;
}

static inline int64_t gp_tree_end_ns(const gp_tree_span_t *span)
{
    return (int64_t)span->record.end_unix_ns;
}

static inline uint64_t gp_tree_span_ns(const gp_tree_span_t *span)
{
    return (uint64_t)(span->to_ns - span->from_ns);
}

void gp_spans_free(gp_spans_t *set);
