// SPDX-License-Identifier: MIT
// What leaves a host: rows, made of one piece of one capture, together a batch.
//
// Model: a batch stands for the bytes [from, to) of a capture, or, where `is_paths` says so, for the critical paths of
// the requests of a capture that has ended, and for the delays of coroutines that had to wait for long slices. Its id
// is a hash of these, so that the same piece makes a batch of the same id, whoever makes it and how often. Weights are
// as sampled, in nanoseconds, unscaled: they add up to the capture's samples whatever the pieces are. A row of samples
// is the sum of all samples that agree in everything but the weight.
//
// Texts are UTF-8 or whatever the program used, ended by NUL, never NULL ("" = not known), and live as long as the
// batch.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

enum gp_row_measure {
    GP_ROW_TIME = 0,          // what was sampled
    GP_ROW_CRITICAL_PATH = 1, // which part of a request's latency
    GP_ROW_VICTIM_TIME = 2,   // how long the coroutine was ready while the stack, which is another's, kept its thread
};

typedef struct gp_row_pair {
    const char *key, *value;
} gp_row_pair_t;

typedef struct gp_row_frame {
    const char *name;   // "module+0x12" where no symbol covers it
    const char *file;   // source file, else ""
    const char *module; // path, "" for none
    const char *build;  // build-id of the module as hex, where the name is not known; else ""
    uint64_t address;   // as in the module's ELF file, where the name is not known; else 0
    uint32_t line;      // 0 = unknown
    bool is_inlined;    // into the frame before it
} gp_row_frame_t;

typedef struct gp_row_stack {
    uint64_t id;                  // hash of its frames; 0: the stack without frames
    const gp_row_frame_t *frames; // [depth], root first; without what a row's state says ("[parked]")
    uint32_t depth;
} gp_row_stack_t;

typedef struct gp_row_process {
    uint64_t id; // hash of host, boot, pid and start, or what the capture has of these
    const char *tenant, *service, *version, *host, *command;
    uint32_t pid;
    uint64_t start_ns;           // CLOCK_REALTIME
    const gp_row_pair_t *labels; // [label_count], by key
    size_t label_count;
    const uint64_t *counters; // [counter_count], enum gp_counter: of the capture so far
    size_t counter_count;
    uint64_t cpu_ns; // exact, so far; 0 = not known
} gp_row_process_t;

typedef struct gp_row_sample {
    uint64_t time_s;       // start of its grain, seconds since 1970
    const char *endpoint;  // of the request of its trace, as far as that had ended when the piece was read; else ""
    const char *coroutine; // name of its entry, or the name that it was given; "[thread NAME]" for a thread's own stack
    uint8_t trace[16];     // zeros = none
    uint8_t measure;       // enum gp_row_measure
    uint8_t state;         // enum gp_sample_kind
    uint32_t stack;        // number in the batch
    uint32_t samples;
    uint64_t weight_ns;
    double squares_ns2; // sum of the squares of the samples' weights, which its error rests on
    const char *hog;    // of GP_ROW_VICTIM_TIME: the coroutine that kept the thread, named as `coroutine`; else ""
} gp_row_sample_t;

// Times of spans are those of the coroutine on which they began.
typedef struct gp_row_times {
    uint64_t cpu_ns, ready_ns, parked_ns, blocked_ns, preempted_ns, waiting_ns;
} gp_row_times_t;

enum gp_stored_flag { // of a span, in a store: these never change
    GP_STORED_OPEN = 1,
    GP_STORED_NO_TIMES = 2,
    GP_STORED_FAILED = 4,
    GP_STORED_REMOTE_PARENT = 8,
    GP_STORED_RESTED = 16,
};

typedef struct gp_row_span {
    uint64_t start_ns, end_ns; // since 1970
    uint8_t trace[16];
    uint64_t id, parent;       // 0 = none
    uint32_t kind;             // prof_span_kind_t
    const char *name;          // "" where texts are not to leave the host
    const gp_row_pair_t *info; // [info_count]: none, unless they were asked for
    size_t info_count;
    gp_row_times_t times;
    bool has_times;
    bool is_open;  // it had not ended when the capture did
    bool has_rest; // as GP_SPAN_RESTED
    bool has_failed;
    bool has_remote_parent;
} gp_row_span_t;

typedef struct gp_row_request { // a span that no other of its process is around
    uint64_t start_ns, latency_ns;
    uint8_t trace[16];
    uint64_t span;
    const char *endpoint; // "rest_dispatch GET /servers"
    gp_row_times_t times; // see `is_whole`
    bool is_whole;        // times of all its coroutines; else of the one on which it began
    bool has_failed;
} gp_row_request_t;

typedef struct gp_batch {
    uint64_t id;
    const char *capture; // path
    uint64_t capture_id; // of its header: see ship/follow/journal.h
    uint64_t from, to;   // bytes of it
    bool is_paths, is_last;
    const gp_row_process_t *process;
    const gp_row_stack_t *stacks; // [stack_count]: those that the samples refer to
    size_t stack_count;
    const gp_row_sample_t *samples; // [sample_count], by time, then by stack; of one day or more
    size_t sample_count;
    const gp_row_request_t *requests; // by start
    size_t request_count;
    const gp_row_span_t *spans; // by start
    size_t span_count;
    size_t spans_read; // as many or, without traces, more
} gp_batch_t;

// The number of the batch of these bytes of a capture.
static inline uint64_t gp_batch_id(uint64_t capture_id, uint64_t from, uint64_t to)
{
    return gp_hash_more(gp_hash_more(gp_hash_u64(capture_id), from), to);
}

enum { GP_BATCH_ROWS_MAX = 1000000 }; // of one table: what a store takes as one piece
