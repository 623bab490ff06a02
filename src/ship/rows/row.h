// SPDX-License-Identifier: MIT
// Rows, which leave a host: made of one piece of one capture, together a batch.
//
// Model: a batch stands for the bytes [from, to) of a capture, or, where `is_paths` says so, for the critical paths of
// the requests of an ended capture, and for the delays of coroutines by long slices. Its id is a hash of these, so that
// the same piece makes a batch of the same id, whoever makes it and how often. Weights are as sampled, in nanoseconds,
// unscaled: they add up to the capture's samples whatever the pieces are. A row of samples is the sum of all samples
// that agree in everything but the weight.
//
// Texts are UTF-8 or whatever the program used, ended by NUL, never NULL ("" = not known), and live as long as the
// batch.
//
// Stores have a table of each kind of row. Its columns stand below the kind, one a line: the version of the schema
// which it came with, its type, its name, and what it is, in words of `row`, `process` and `batch`. From these lines
// come the tables, the steps from version to version, what is written and what is read back. A column is added at the
// end, and never goes. FIELD: a member of the row, or of `process`, which questions read back. VALUE: written only.
// LIST: an array, of each `item` of `items[0, count)` one value; questions read it back where `count` is a member, too.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

enum { GP_ROW_DAY_S = 86400, GP_ROW_S_NS = 1000000000 };

enum gp_row_measure {
    GP_ROW_TIME = 0,          // sampled time
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

#define GP_STACKS_COLUMNS(FIELD, VALUE, LIST)                                                                          \
    VALUE(1, String, "tenant", process->tenant) /* none sees the names of another's functions */                       \
    VALUE(1, UInt64, "stack", row->id)                                                                                 \
    LIST(1, String, "names", row->frames, row->depth, item->name) /* root first, as the others */                      \
    LIST(1, String, "files", row->frames, row->depth, item->file)                                                      \
    LIST(1, UInt32, "lines", row->frames, row->depth, item->line)                                                      \
    LIST(1, String, "modules", row->frames, row->depth, item->module)                                                  \
    LIST(1, UInt64, "addresses", row->frames, row->depth, item->address)                                               \
    LIST(1, String, "builds", row->frames, row->depth, item->build)                                                    \
    LIST(1, UInt8, "inlined", row->frames, row->depth, item->is_inlined)

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

#define GP_PROCESSES_COLUMNS(FIELD, VALUE, LIST)                                                                       \
    VALUE(1, UInt64, "process", row->id)                                                                               \
    VALUE(1, String, "tenant", row->tenant)                                                                            \
    VALUE(1, String, "service", row->service)                                                                          \
    VALUE(1, String, "version", row->version)                                                                          \
    VALUE(1, String, "host", row->host)                                                                                \
    VALUE(1, UInt32, "pid", row->pid)                                                                                  \
    VALUE(1, DateTime, "start", row->start_ns / GP_ROW_S_NS)                                                           \
    VALUE(1, String, "command", row->command)                                                                          \
    LIST(1, String, "labels.key", row->labels, row->label_count, item->key)                                            \
    LIST(1, String, "labels.value", row->labels, row->label_count, item->value)                                        \
    LIST(1, UInt64, "counters", row->counters, row->counter_count, *item)                                              \
    VALUE(1, UInt64, "cpu_ns", row->cpu_ns)                                                                            \
    VALUE(1, DateTime, "seen", now_s)

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

#define GP_SAMPLES_COLUMNS(FIELD, VALUE, LIST)                                                                         \
    VALUE(1, Date, "day", row->time_s / GP_ROW_DAY_S)                                                                  \
    VALUE(1, DateTime, "time", row->time_s)                                                                            \
    VALUE(1, String, "tenant", process->tenant)                                                                        \
    VALUE(1, String, "service", process->service)                                                                      \
    VALUE(1, String, "version", process->version)                                                                      \
    VALUE(1, String, "host", process->host)                                                                            \
    VALUE(1, UInt64, "process", process->id)                                                                           \
    VALUE(1, String, "endpoint", row->endpoint)                                                                        \
    VALUE(1, Id128, "trace", row->trace)                                                                               \
    VALUE(1, String, "coroutine", row->coroutine)                                                                      \
    VALUE(1, UInt8, "measure", row->measure)                                                                           \
    VALUE(1, UInt8, "state", row->state)                                                                               \
    VALUE(1, UInt64, "stack", batch->stacks[row->stack].id)                                                            \
    VALUE(1, UInt64, "weight_ns", row->weight_ns)                                                                      \
    VALUE(1, UInt32, "samples", row->samples)                                                                          \
    VALUE(1, UInt64, "batch", batch->id)                                                                               \
    VALUE(2, Float32, "squares_ns2", row->samples > 1 ? row->squares_ns2 : 0) /* of one sample: by weight_ns */        \
    VALUE(2, String, "hog", row->hog)

// Times of spans are those of the coroutine on which they began.
typedef struct gp_row_times {
    uint64_t cpu_ns, ready_ns, parked_ns, blocked_ns, preempted_ns, waiting_ns;
} gp_row_times_t;

#define GP_TIMES_COLUMNS(FIELD)                                                                                        \
    FIELD(1, UInt64, "cpu_ns", row->times.cpu_ns)                                                                      \
    FIELD(1, UInt64, "ready_ns", row->times.ready_ns)                                                                  \
    FIELD(1, UInt64, "parked_ns", row->times.parked_ns)                                                                \
    FIELD(1, UInt64, "blocked_ns", row->times.blocked_ns)                                                              \
    FIELD(1, UInt64, "preempted_ns", row->times.preempted_ns)                                                          \
    FIELD(1, UInt64, "waiting_ns", row->times.waiting_ns)

enum gp_stored_flag { // of a span: these never change
    GP_STORED_OPEN = 1,
    GP_STORED_NO_TIMES = 2,
    GP_STORED_FAILED = 4,
    GP_STORED_REMOTE_PARENT = 8,
    GP_STORED_RESTED = 16,
};

typedef struct gp_row_span {
    uint64_t start_ns, end_ns; // since 1970
    uint8_t trace[16];
    uint64_t id, parent; // 0 = none
    uint32_t kind;       // prof_span_kind_t
    const char *name;    // "" where texts are not to leave the host
    gp_row_pair_t *info; // [info_count]: none, unless they were asked for
    size_t info_count;
    gp_row_times_t times;
    uint8_t flags; // enum gp_stored_flag
} gp_row_span_t;

#define GP_SPANS_COLUMNS(FIELD, VALUE, LIST)                                                                           \
    VALUE(1, Date, "day", row->start_ns / GP_ROW_S_NS / GP_ROW_DAY_S)                                                  \
    FIELD(1, UInt64, "start_ns", row->start_ns)                                                                        \
    FIELD(1, UInt64, "end_ns", row->end_ns)                                                                            \
    VALUE(1, String, "tenant", process->tenant)                                                                        \
    FIELD(1, String, "service", process->service)                                                                      \
    FIELD(1, String, "host", process->host)                                                                            \
    FIELD(1, UInt64, "process", process->id)                                                                           \
    FIELD(1, Id128, "trace", row->trace)                                                                               \
    FIELD(1, UInt64, "span", row->id)                                                                                  \
    FIELD(1, UInt64, "parent", row->parent)                                                                            \
    FIELD(1, UInt8, "kind", row->kind)                                                                                 \
    FIELD(1, UInt8, "flags", row->flags)                                                                               \
    FIELD(1, String, "name", row->name)                                                                                \
    LIST(1, String, "info.key", row->info, row->info_count, item->key)                                                 \
    LIST(1, String, "info.value", row->info, row->info_count, item->value)                                             \
    GP_TIMES_COLUMNS(FIELD)                                                                                            \
    VALUE(1, UInt64, "batch", batch->id)

typedef struct gp_row_request { // a span without another of its process around it
    uint64_t start_ns, latency_ns;
    uint8_t trace[16];
    uint64_t span;
    const char *endpoint; // "rest_dispatch GET /servers"
    gp_row_times_t times; // see `is_whole`
    bool is_whole;        // times of all its coroutines; else only of its first coroutine
    bool has_failed;
} gp_row_request_t;

#define GP_REQUESTS_COLUMNS(FIELD, VALUE, LIST)                                                                        \
    VALUE(1, Date, "day", row->start_ns / GP_ROW_S_NS / GP_ROW_DAY_S)                                                  \
    FIELD(1, UInt64, "start_ns", row->start_ns)                                                                        \
    VALUE(1, String, "tenant", process->tenant)                                                                        \
    FIELD(1, String, "service", process->service)                                                                      \
    FIELD(1, String, "version", process->version)                                                                      \
    FIELD(1, String, "host", process->host)                                                                            \
    FIELD(1, UInt64, "process", process->id)                                                                           \
    FIELD(1, String, "endpoint", row->endpoint)                                                                        \
    FIELD(1, Id128, "trace", row->trace)                                                                               \
    FIELD(1, UInt64, "span", row->span)                                                                                \
    FIELD(1, UInt64, "latency_ns", row->latency_ns)                                                                    \
    FIELD(1, UInt8, "failed", row->has_failed)                                                                         \
    FIELD(1, UInt8, "whole", row->is_whole)                                                                            \
    GP_TIMES_COLUMNS(FIELD)                                                                                            \
    VALUE(1, UInt64, "batch", batch->id)

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

#define GP_BATCHES_COLUMNS(FIELD, VALUE, LIST)                                                                         \
    VALUE(1, Date, "day", now_s / GP_ROW_DAY_S)                                                                        \
    VALUE(1, UInt64, "batch", row->id)                                                                                 \
    VALUE(1, String, "tenant", process->tenant)                                                                        \
    VALUE(1, UInt64, "process", process->id)                                                                           \
    VALUE(1, UInt64, "from_byte", row->from)                                                                           \
    VALUE(1, UInt64, "to_byte", row->to)                                                                               \
    VALUE(1, UInt32, "samples", row->sample_count) /* rows */                                                          \
    VALUE(1, UInt32, "requests", row->request_count)                                                                   \
    VALUE(1, UInt32, "spans", row->span_count)                                                                         \
    VALUE(1, DateTime, "sent", now_s)

// The tables, all named greenprof_NAME: the type of a row, the rows of a batch, a row's day (0: any number of days goes
// in one statement), how a ClickHouse keeps the rows, and by what it finds them. Parts are by day where there is one.
#define GP_ROW_TABLES(TABLE)                                                                                           \
    TABLE(SAMPLES, samples, gp_row_sample_t, batch->samples, batch->sample_count, row->time_s / GP_ROW_DAY_S,          \
          "MergeTree", "(tenant, service, time, stack)")                                                               \
    TABLE(STACKS, stacks, gp_row_stack_t, batch->stacks, batch->stack_count, 0, "ReplacingMergeTree",                  \
          "(tenant, stack)")                                                                                           \
    TABLE(PROCESSES, processes, gp_row_process_t, batch->process, 1, 0, "ReplacingMergeTree(seen)",                    \
          "(tenant, process)")                                                                                         \
    TABLE(REQUESTS, requests, gp_row_request_t, batch->requests, batch->request_count,                                 \
          row->start_ns / GP_ROW_S_NS / GP_ROW_DAY_S, "MergeTree", "(tenant, service, start_ns)")                      \
    TABLE(SPANS, spans, gp_row_span_t, batch->spans, batch->span_count, row->start_ns / GP_ROW_S_NS / GP_ROW_DAY_S,    \
          "MergeTree", "(tenant, trace, start_ns)")                                                                    \
    TABLE(BATCHES, batches, gp_batch_t, batch, 1, 0, "ReplacingMergeTree(sent)", "batch")

// The number of the batch of these bytes of a capture.
static inline uint64_t gp_batch_id(uint64_t capture_id, uint64_t from, uint64_t to)
{
    return gp_hash_more(gp_hash_more(gp_hash_u64(capture_id), from), to);
}

enum { GP_BATCH_ROWS_MAX = 1000000 }; // of a table: as many as a store takes at once
