// SPDX-License-Identifier: MIT
// A span: an operation with a beginning and an end (greenprof/trace.h), from where it begins to where it is shown.
//
// Each holder has one of these and, in a form of its own, the texts: a slot while the span is open, a ring's record
// when it is over (ring_record.h), a capture's record in the file (capture/format.h), the tables of readers.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/ledger.h"
#include "model/span_kind.h"

struct prof_span_record;

typedef struct gp_span {
    uint64_t coro_id;       // on which it began
    uint64_t end_coro_id;   // the coroutine at its end; 0 = it has not ended, or not known
    uint64_t id, parent_id; // parent_id 0 = none
    uint64_t trace[2];      // the id's bytes as they are; zeros = none, or the holder has a number for it
    uint64_t start, end;    // by the holder's clock: ticks, ns since the capture's start, ns since 1970
    gp_ledger_t times;      // of coro_id between the two; zeros with GP_SPAN_NO_TIMES
    uint32_t site;          // stack at its beginning, by the holder's number; 0 = not kept
    uint32_t thread;        // index, at its beginning; 0 = not known
    uint16_t kind;          // prof_span_kind_t
    uint16_t flags;         // enum gp_span_flag
    uint8_t is_chosen;      // for those that listen: the policy says so. Not bool: it is in ring files
    uint16_t name_len;
} gp_span_t;

#define GP_SPAN_LAYOUT 1u // raised with each change of the struct, which is in ring files
static_assert(sizeof(gp_span_t) == 168 && GP_SPAN_LAYOUT == 1, "both change together");

// Fields that captures keep: X(field, field of gp_span_record_t).
// clang-format off
#define GP_SPAN_KEPT(X)                                                                                                \
    X(id, id) X(parent_id, parent_id) X(coro_id, coro_id) X(end_coro_id, end_coro_id)                                  \
    X(times.cpu_ns, cpu_ns) X(times.slice_ns, slice_ns) X(times.blocked_ns, blocked_ns) X(times.ready_ns, ready_ns)    \
    X(times.parked_ns, parked_ns) X(times.waiting_ns, waiting_ns) X(times.switches, switches)                          \
    X(thread, thread) X(kind, kind) X(flags, flags) X(name_len, name_len)
// clang-format on

// Numbers that consumers get, besides moments and times: X(field, uint64_t of prof_span_record_t, key in JSON).
#define GP_SPAN_SHOWN(X) X(coro_id, coroutine_id, "coroutine")

enum gp_tree_flag {              // besides enum gp_span_flag, what a tree of spans finds out about one
    GP_TREE_CRITICAL = 1 << 16,  // on the critical path of its root
    GP_TREE_LOST = 1 << 17,      // its parent is in no source
    GP_TREE_CIRCLE = 1 << 18,    // a span was its own ancestor: cut here
    GP_TREE_TWICE = 1 << 19,     // another span has its id
    GP_TREE_BACKWARDS = 1 << 20, // it ended before it began: shown as without duration
    GP_TREE_FLAGS = GP_TREE_CRITICAL | GP_TREE_LOST | GP_TREE_CIRCLE | GP_TREE_TWICE | GP_TREE_BACKWARDS,
};

// Names of the flags of both kinds in JSON; ended by flag 0. Flags not listed here have no name.
typedef struct gp_span_flag_name {
    uint32_t flag;
    const char *name;
} gp_span_flag_name_t;

extern const gp_span_flag_name_t gp_span_flag_names[];

// Say what is known of a span in the public form: ids, moments, times, kind and flags. Texts are left empty.
void gp_span_publish(const gp_span_t *span, uint64_t start_unix_ns, uint64_t end_unix_ns,
                     struct prof_span_record *record);
