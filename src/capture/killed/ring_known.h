// SPDX-License-Identifier: MIT
// A capture's definitions that records of rings refer to.
//
// Model: gp_ring_known_begin(), then a gp_ring_known_need...() for each reference; then gp_ring_known_read(), which
// goes through the capture once and fills in the definitions. Memory: these, however large the capture is. Threads: one
// at a time.
#pragma once

#include "base/table.h"
#include "capture/read/reader.h"

typedef struct gp_ring_known_coro {
    uint64_t id;
    uint64_t ledger_ns; // up to when its ledger is there
    uint32_t thread;    // of a thread's own stack: its index, else 0
    bool is_there;
} gp_ring_known_coro_t;

typedef struct gp_ring_known_trace {
    uint64_t id[2];
    uint32_t number; // 0 = it has none
} gp_ring_known_trace_t;

typedef struct gp_ring_known_thread {
    gp_thread_record_t record;
    bool is_there;
} gp_ring_known_thread_t;

typedef struct gp_ring_known_module {
    gp_module_record_t record;
    bool is_own; // greenprof itself
} gp_ring_known_module_t;

typedef struct gp_ring_known { // gp_ring_known_begin()
    GP_TABLE(gp_ring_known_coro_t) coros;
    GP_TABLE(gp_ring_known_trace_t) traces;
    GP_TABLE(gp_ring_known_thread_t) threads;
    GP_TABLE(gp_ring_known_module_t) modules;
    gp_index_t by_trace;
    uint32_t last_trace, last_stack, last_function; // numbers given out
    gp_counters_record_t *counters;                 // the last, and its values; NULL = there is none
    uint64_t first_sequence;                        // set by the caller: of the chunk from which on
    bool has[GP_CHUNK_TYPES];                       // there are chunks of this type
} gp_ring_known_t;

void gp_ring_known_begin(gp_ring_known_t *known);

// Add what is not in it yet. Returns NULL when memory is short; moves with the next call of its kind.
gp_ring_known_coro_t *gp_ring_known_need_coro(gp_ring_known_t *known, uint64_t id);
gp_ring_known_trace_t *gp_ring_known_need_trace(gp_ring_known_t *known, const uint64_t id[2]);
gp_ring_known_thread_t *gp_ring_known_need_thread(gp_ring_known_t *known, uint32_t index);

// Returns as gp_reader_read(). fd: of a file; its position is changed.
int gp_ring_known_read(gp_ring_known_t *known, int fd, char error[GP_READER_ERROR_SIZE]);

// Where a program counter was; NULL = in no module that the capture has.
const gp_ring_known_module_t *gp_ring_known_module_at(const gp_ring_known_t *known, uint64_t pc);

void gp_ring_known_free(gp_ring_known_t *known);
