// SPDX-License-Identifier: MIT
// The capture file (*.greenprof), slot by slot. Version 2.
//
// All integers are little-endian; every record starts on an 8-byte boundary of its chunk's payload. A file is one
// gp_file_header followed by chunks. A chunk is a gp_chunk_header and `payload_len` bytes, padded with zeros to a
// multiple of 8 (the padding is not counted in payload_len and not in the checksum). Its flags say how the records
// became those bytes; without flags they are the records. Chunks are only appended. A reader skips a chunk of a type it
// does not know. A bad checksum loses one chunk only: the next is found by searching for GP_CHUNK_MAGIC on 8-byte
// boundaries. A definition (module, thread, trace, coroutine, stack) is written before the first record that refers to
// it. A definition that comes again for the same id replaces the earlier one.
#pragma once

#include <assert.h>
#include <stdint.h>

#include "model/call_count.h"
#include "model/counters.h"
#include "model/kinds.h"
#include "model/location.h"

#define GP_FILE_MAGIC   "GRNPROF\n" // 8 bytes, no NUL
#define GP_CHUNK_MAGIC  0x4b435047u // "GPCK"
#define GP_FILE_VERSION 2u          // raised when an old reader would misread; features cover the rest

// Feature bits: a reader refuses a file with a required bit (low 32) that it does not know, and ignores unknown
// optional bits (high 32).
#define GP_FEATURE_ZSTD   1ull // chunks may have GP_CHUNK_ZSTD
#define GP_FEATURE_PACKED 2ull // chunks may have GP_CHUNK_PACKED
#define GP_FEATURES_KNOWN (GP_FEATURE_ZSTD | GP_FEATURE_PACKED)

typedef struct gp_file_header {
    char magic[8];               //   0 GP_FILE_MAGIC
    uint32_t version;            //   8 GP_FILE_VERSION
    uint32_t header_bytes;       //  12 sizeof(gp_file_header_t); chunks start here
    uint64_t features;           //  16
    uint64_t start_realtime_ns;  //  24 CLOCK_REALTIME when sampling started
    uint64_t start_monotonic_ns; //  32 CLOCK_MONOTONIC at the same moment; times in records are ns since it
    uint32_t pid;                //  40
    uint32_t ppid;               //  44
    uint32_t frequency_hz;       //  48 as asked for
    uint32_t engine;             //  52 enum gp_engine
    uint32_t elf_machine;        //  56 EM_X86_64 (62) or EM_AARCH64 (183): words of 64 bits; 0 = not told
    uint32_t clock;              //  60 0 = cpu, 1 = wall: which one readers show by default; both are in the file
    uint8_t session[16];         //  64 random, the same for every file of one `greenprof run`
    uint64_t tick_hz;            //  80 calibrated frequency of the switch clock (time-stamp counter), Hz
    uint32_t part;               //  88 of a recording in parts: 0, 1, 2, ...
    uint8_t reserved[28];        //  92 zeros
    uint64_t checksum;           // 120 XXH64(the 120 bytes before, seed = 0); 0 = the writer made none
} gp_file_header_t;              // 128, and once more as the first chunk: GP_CHUNK_HEADER

typedef struct gp_chunk_header {
    uint32_t magic;       //  0 GP_CHUNK_MAGIC
    uint16_t type;        //  4 enum gp_chunk_type
    uint16_t flags;       //  6 enum gp_chunk_flag
    uint32_t payload_len; //  8 bytes as they are in the file, without padding; at most GP_CHUNK_MAX
    uint32_t sequence;    // 12 0, 1, 2, ...: a gap tells the reader that chunks are missing
    uint64_t checksum;    // 16 XXH64(payload, payload_len, seed = GP_CHUNK_SEED)
} gp_chunk_header_t;      // 24

// The checksum covers the header as well: a damaged type must not turn records into others of the same size.
#define GP_CHUNK_SEED(type, flags, sequence) ((uint64_t)(sequence) | (uint64_t)(type) << 32 | (uint64_t)(flags) << 48)

#define GP_CHUNK_MAX (16u << 20) // of the payload, of what it is decompressed to, and of the records in it

// Steps that made the records the payload, in this order: packed, then compressed.
enum gp_chunk_flag {
    GP_CHUNK_PACKED = 1, // a gp_packed_header_t and columns instead of records, which are all of one size
    GP_CHUNK_ZSTD = 2,   // a zstd frame that says its content size (RFC 8878)
};

// Records in columns: their 32-bit words, all first ones, then all second ones, each column with as many bytes a word
// as it needs. A column that hardly changes costs hardly anything, nor does an added field while it is zero. A reader
// takes the words of a record it knows and leaves the others; words that are missing are zero. So records grow at their
// end without a new version.
typedef struct gp_packed_header {
    uint32_t count;        // 0 records
    uint16_t record_bytes; // 4 size of each, a multiple of 4
    uint16_t reserved;     // 6
} gp_packed_header_t;      // 8, then gp_packed_column_t[record_bytes / 4], then the columns' bytes

typedef struct gp_packed_column {
    uint32_t base;     // 0
    uint8_t width;     // 4 bytes kept of each word, 0..4
    uint8_t is_delta;  // 5 0: word = base + kept; 1: word = the record before's (base for the first) + unzigzag(kept)
    uint16_t reserved; // 6
} gp_packed_column_t;  // 8; its bytes are uint8_t[width][count], the lowest byte of each kept value first

// kept = zigzag(difference): small differences of either sign are small numbers. Modulo 2^32.
#define GP_ZIGZAG(difference) (((uint32_t)(difference) << 1) ^ (0u - ((uint32_t)(difference) >> 31)))
#define GP_UNZIGZAG(kept)     (((uint32_t)(kept) >> 1) ^ (0u - ((uint32_t)(kept)&1)))

// Types of chunks, each with records of one type: X(number, ID, name, how, turn).
//   name  of the record, gp_NAME_record_t below, and of its handler
//   how   PACKED: written in columns; PLAIN: as it is
//   turn  in which a writer writes it: 0 definitions, 1 stacks (they refer to functions), 2 what refers to
//         all of these, 3 the end
// Beside a struct of one size, GP_FIELDS_name(F) has its fields that are numbers or moments of one capture, by what
// they mean (capture/several/captures_records.c): F(name, field, meaning).
// clang-format off
#define GP_RECORDS_OF_ONE_SIZE(X)                                                                                      \
    X( 3, THREADS, thread, PLAIN, 0)                                                                                   \
    X( 4, COROS, coro, PLAIN, 0)                                                                                       \
    X( 5, TRACES, trace, PLAIN, 0)                                                                                     \
    X( 7, SAMPLES, sample, PACKED, 2)                                                                                  \
    X( 8, LEDGER, ledger, PACKED, 2) /* increments: a reader adds them up */                                           \
    X(10, END, end, PLAIN, 3) /* one: the process or the sampling ended in order */                                    \
    X(13, DELAYS, delay, PLAIN, 2)                                                                                     \
    X(14, CALLS, call, PLAIN, 2) /* of exact mode */                                                                   \
    X(16, ACTIVITIES, activity, PACKED, 2)                                                                             \
    X(17, CENSUS, census, PLAIN, 2)                                                                                    \
    X(18, ORIGINS, origin, PACKED, 2)                                                                                  \
    X(24, SUMS, sum, PACKED, 1) /* before the samples that they are about */                                           \
    X(25, OPEN_ACTIVITIES, open_activity, PACKED, 1) /* before the ACTIVITIES that follow, as OPEN_SPANS */
#define GP_RECORDS_WITH_TAIL(X) /* that many more bytes as a field says */                                             \
    X( 1, META, meta, PLAIN, 0)                                                                                        \
    X( 2, MODULES, module, PLAIN, 0)                                                                                   \
    X( 6, STACKS, stack, PLAIN, 1)                                                                                     \
    X( 9, COUNTERS, counters, PLAIN, 2) /* one, cumulative: the last one counts */                                     \
    X(11, FUNCTIONS, function, PLAIN, 0) /* of language runtimes (CPython) */                                          \
    X(12, HOGS, hog, PLAIN, 2)                                                                                         \
    X(19, SPANS, span, PLAIN, 2)                                                                                       \
    X(20, OPEN_SPANS, open_span, PLAIN, 1) /* before the SPANS that follow: what is over there is not open any more */
// clang-format on
#define GP_RECORDS(X) GP_RECORDS_OF_ONE_SIZE(X) GP_RECORDS_WITH_TAIL(X)

#define GP_CHUNK_ID(number, id, name, how, turn) GP_CHUNK_##id = (number),
enum gp_chunk_type {
    GP_CHUNK_HEADER = 15, // a gp_file_header_t, for when the one at the start of the file is damaged
    GP_RECORDS(GP_CHUNK_ID)
};
#undef GP_CHUNK_ID

// The largest of the types, plus one.
#define GP_CHUNK_BELOW(number, id, name, how, turn) char name[(number) + 1];
enum { GP_CHUNK_TYPES = sizeof(union { GP_RECORDS(GP_CHUNK_BELOW) char header[GP_CHUNK_HEADER + 1]; }) };
#undef GP_CHUNK_BELOW

#define GP_NOT_KNOWN_KEY "not_known"

typedef struct gp_meta_record { // key=value texts: "exe", "cmdline" (arguments joined by NUL), "hostname", "greenprof",
                                // "service", "budget" (1%); of merged ones, "merged" and "process"
                                // (capture/read/process_text.h); labels: "GREENPROF_LABELS", "OTEL_...": variables as
                                // they were; "cgroup": proc_pid_cgroup(5); each "not_known": of a runtime, and what is
                                // not seen of it therefore
    uint16_t key_len;           // 0 key bytes, then value bytes, then padding to 8
    uint16_t reserved;          // 2
    uint32_t value_len;         // 4
} gp_meta_record_t;

typedef struct gp_module_record {
    uint32_t id;           //  0 1..65533
    uint16_t build_id_len; //  4 0 when the module has none; at most 20 are kept
    uint16_t path_len;     //  6
    uint64_t start, end;   //  8, 16 mapped range [start, end)
    uint64_t bias;         // 24 address = bias + ELF address
    uint8_t build_id[20];  // 32 without one: gp_file_stamp_t of the file, zeroed where it is not known
    uint8_t reserved[4];   // 52
} gp_module_record_t;      // 56, then path_len bytes of path ("[vdso]" for the vDSO), padding to 8

typedef struct gp_function_record {
    uint32_t number;     //  0 1, 2, ...: never reused in a file
    uint32_t first_line; //  4 at which it is defined; 0 = unknown
    uint32_t name_len;   //  8
    uint32_t file_len;   // 12
} gp_function_record_t;  // 16, then name and file as UTF-8, padding to 8

typedef struct gp_thread_record {
    uint32_t index;    //  0 1, 2, ...: never reused in a file
    uint32_t tid;      //  4
    uint64_t start_ns; //  8 first seen
    uint64_t end_ns;   // 16 0 while it lives
    uint64_t cpu_ns;   // 24 its CPU time between the two, exact
    uint64_t coro_id;  // 32 the id under which its own stack is charged
    char name[24];     // 40 NUL-terminated
} gp_thread_record_t;  // 64
#define GP_FIELDS_thread(F)                                                                                            \
    F(thread, index, THREAD) F(thread, coro_id, CORO) F(thread, start_ns, TIME) F(thread, end_ns, TIME_IF_SET)

typedef struct gp_coro_record {
    uint64_t id;          //  0 1, 2, ...: never reused in a file
    uint64_t parent_id;   //  8 its spawner; 0 = unknown
    gp_loc_t entry;       // 16 its entry function; 0 = unknown
    uint64_t stack_lo;    // 24
    uint64_t stack_bytes; // 32
    uint64_t birth_ns;    // 40
    uint32_t kind;        // 48 enum gp_coro_kind
    uint32_t thread;      // 52 thread index for GP_CORO_THREAD, else 0
    char name[48];        // 56 NUL-terminated, "" when it has none; renamed: the record comes again
} gp_coro_record_t;       // 104
#define GP_FIELDS_coro(F)                                                                                              \
    F(coro, id, CORO) F(coro, parent_id, CORO) F(coro, entry, LOC) F(coro, thread, THREAD) F(coro, birth_ns, TIME)

// The origin of a coroutine; one of unknown origin has no record.
typedef struct gp_origin_record {
    uint64_t coro_id;  //  0
    uint32_t stack_id; //  8 stack of its creator, gp_coro_record_t.parent_id, at that moment; 0 = not known
    uint32_t region;   // 12 of GP_CORO_FOUND: enum gp_region_kind bits; else 0
    gp_loc_t pool;     // 16 of a call that was handed to a pool of threads: function "[pool NAME of SIZE]"; else 0
} gp_origin_record_t;  // 24
#define GP_FIELDS_origin(F) F(origin, coro_id, CORO) F(origin, stack_id, STACK) F(origin, pool, LOC)

typedef struct gp_trace_record {
    uint32_t index;    // 0 1, 2, ...; 0 in a sample means no trace
    uint32_t reserved; // 4
    uint8_t id[16];    // 8 the trace id, first byte first as in its hex form
} gp_trace_record_t;   // 24
#define GP_FIELDS_trace(F)

typedef struct gp_stack_record {
    uint32_t id;     // 0 1, 2, ...: never reused in a file; 0 in a sample = no stack
    uint16_t depth;  // 4
    uint16_t flags;  // 6 enum gp_stack_flag
} gp_stack_record_t; // 8, then gp_loc_t[depth], innermost first

typedef struct gp_sample_record {
    uint64_t time_ns;   //  0 since start_monotonic_ns; of a wait, when it ended
    uint64_t weight_ns; //  8
    uint64_t coro_id;   // 16
    uint32_t thread;    // 24 thread index; 0 = none: a wait that did not end
    uint32_t stack_id;  // 28
    uint32_t trace;     // 32 trace index
    uint32_t kind;      // 36 enum gp_sample_kind
} gp_sample_record_t;   // 40
#define GP_FIELDS_sample(F)                                                                                            \
    F(sample, time_ns, TIME)                                                                                           \
    F(sample, coro_id, CORO) F(sample, thread, THREAD) F(sample, stack_id, STACK) F(sample, trace, TRACE)

// The sample of the same time, coroutine, stack, trace and kind is the sum of several: a store's answer has such.
typedef struct gp_sum_record {
    uint64_t time_ns;   //  0
    uint64_t coro_id;   //  8
    uint64_t samples;   // 16 how many
    double squares_ns2; // 24 sum of the squares of their weights
    uint32_t stack_id;  // 32
    uint32_t trace;     // 36 trace index
    uint32_t kind;      // 40
    uint32_t reserved;  // 44
} gp_sum_record_t;      // 48
#define GP_FIELDS_sum(F) F(sum, time_ns, TIME) F(sum, coro_id, CORO) F(sum, stack_id, STACK) F(sum, trace, TRACE)

enum gp_ledger_flag {
    GP_LEDGER_WHOLE = 1, // of a thread that never had a coroutine: its whole life, also what it sleeps on its own stack
};

// Exact time of one coroutine under one trace since its ledger record before. All but longest_ns are differences modulo
// 2^64: a wait first told as waiting may turn out to have been parked.
// wall = cpu + blocked + preempted + ready + parked + waiting; preempted = slice - cpu - blocked
typedef struct gp_ledger_record {
    uint64_t coro_id;    //  0
    uint32_t trace;      //  8 trace index
    uint32_t flags;      // 12 enum gp_ledger_flag
    uint64_t cpu_ns;     // 16
    uint64_t switches;   // 24 times it was switched to
    uint64_t time_ns;    // 32 up to when
    uint64_t slice_ns;   // 40 between being switched to and away from
    uint64_t blocked_ns; // 48 its thread slept in the kernel meanwhile
    uint64_t ready_ns;   // 56
    uint64_t parked_ns;  // 64
    uint64_t waiting_ns; // 72 ready or parked, unknown which
    uint64_t spawned;    // 80 coroutines it created
    uint64_t longest_ns; // 88 its longest slice so far
    uint64_t gil_ns;     // 96 of the time off the CPU, waiting for the lock of an interpreter
    uint64_t lock_ns;    // 104 and for a lock of the program's
} gp_ledger_record_t;    // 112
#define GP_FIELDS_ledger(F) F(ledger, time_ns, TIME) F(ledger, coro_id, CORO) F(ledger, trace, TRACE)

typedef struct gp_hog_stack {
    uint32_t stack_id;  // 0
    uint32_t reserved;  // 4
    uint64_t weight_ns; // 8 time of the slice with this stack, as sampled: on the CPU or not
} gp_hog_stack_t;       // 16

typedef struct gp_hog_record { // a slice of at least the threshold
    uint64_t id;               //  0 1, 2, ...
    uint64_t coro_id;          //  8
    uint64_t start_ns;         // 16
    uint64_t duration_ns;      // 24
    uint32_t trace;            // 32 trace index
    uint32_t thread;           // 36 thread index
    uint32_t stack_count;      // 40
    uint32_t reserved;         // 44
} gp_hog_record_t;             // 48, then gp_hog_stack_t[stack_count]
#define GP_FIELDS_hog(F)                                                                                               \
    F(hog, id, HOG) F(hog, start_ns, TIME) F(hog, coro_id, CORO) F(hog, thread, THREAD) F(hog, trace, TRACE)

typedef struct gp_delay_record { // a coroutine that was ready while a hog kept its thread
    uint64_t hog_id;             //  0
    uint64_t coro_id;            //  8 the victim
    uint64_t delay_ns;           // 16
    uint32_t trace;              // 24 the victim's trace index
    uint32_t unseen_us;          // 28 of delay_ns, when it was ready at most: its loop had not looked
} gp_delay_record_t;             // 32
#define GP_FIELDS_delay(F) F(delay, hog_id, HOG) F(delay, coro_id, CORO) F(delay, trace, TRACE)

typedef gp_call_count_t gp_call_record_t; // a later record of the same caller and callee replaces it
static_assert(sizeof(gp_call_record_t) == 96, "a record keeps its layout");
#define GP_FIELDS_call(F)                                                                                              \
    F(call, caller, CALLED) F(call, callee, CALLED) F(call, caller_loc, LOC) F(call, callee_loc, LOC)

// The timeline: a coroutine was active in [start_ns, left_ns), then waited in [left_ns, end_ns). Active is: it ran, or
// waited for a short time only; slice_ns of it were slices. Activities of a coroutine adjoin, but come in no order.
typedef struct gp_activity_record {
    uint64_t coro_id;    //  0
    uint64_t start_ns;   //  8
    uint64_t left_ns;    // 16
    uint64_t end_ns;     // 24
    uint64_t slice_ns;   // 32
    uint64_t ready_ns;   // 40 from when on it could run, in [left_ns, end_ns]; 0 = not reported
    uint64_t waker_id;   // 48 the coroutine that made it ready; 0 = not known
    uint32_t trace;      // 56 trace index
    uint32_t thread;     // 60 thread index at start_ns, 0 = not known
    uint32_t is_open;    // 64 1 = what goes on at end_ns: the coroutine's end, or that of the capture
    uint32_t has_times;  // 68 1 = the next two are known
    uint64_t cpu_ns;     // 72 of slice_ns, on the CPU
    uint64_t blocked_ns; // 80 and its thread slept in the kernel; the rest it was preempted
    uint64_t gil_ns;     // 88 of the time off the CPU, waiting for the lock of an interpreter
    uint64_t lock_ns;    // 96 and for a lock of the program's
} gp_activity_record_t;  // 104
// clang-format off
#define GP_FIELDS_activity(F)                                                                                          \
    F(activity, coro_id, CORO) F(activity, waker_id, CORO) F(activity, trace, TRACE) F(activity, thread, THREAD)       \
    F(activity, start_ns, TIME) F(activity, left_ns, TIME) F(activity, end_ns, TIME)                                   \
    F(activity, ready_ns, TIME_IF_SET)
// clang-format on

// Set the times of an activity.
//   off_ns: the slices' time off the CPU; may be a little below zero. blocked_ns: the sleeping part of off_ns.
//   gil_ns: the part of off_ns that was a wait for an interpreter's lock; lock_ns: for one of the program's.
static inline void gp_activity_set_times(gp_activity_record_t *activity, uint64_t off_ns, uint64_t blocked_ns,
                                         uint64_t gil_ns, uint64_t lock_ns)
{
    uint64_t off = (int64_t)off_ns > 0 ? off_ns : 0;
    off = off < activity->slice_ns ? off : activity->slice_ns;
    activity->has_times = 1;
    activity->cpu_ns = activity->slice_ns - off;
    activity->blocked_ns = (int64_t)blocked_ns > 0 ? (blocked_ns < off ? blocked_ns : off) : 0;
    activity->gil_ns = (int64_t)gil_ns > 0 ? (gil_ns < off ? gil_ns : off) : 0;
    activity->lock_ns =
        (int64_t)lock_ns > 0 ? (lock_ns < off - activity->gil_ns ? lock_ns : off - activity->gil_ns) : 0;
}

// The unfinished activity of a coroutine of an open request. An activity of the same coroutine that ends after its
// start_ns replaces it, and so does a later open one. Readers need these while a capture has no end.
typedef gp_activity_record_t gp_open_activity_record_t;
#define GP_FIELDS_open_activity GP_FIELDS_activity

// An operation with a beginning and an end (greenprof/trace.h). Its times are those of `coro_id` between the two.
typedef struct gp_span_record {
    uint64_t id;          //   0 random, unique, not 0
    uint64_t parent_id;   //   8 0 = none
    uint64_t coro_id;     //  16 on which it began
    uint64_t end_coro_id; //  24 on which it ended; 0 = it did not, or nothing knows
    uint64_t start_ns;    //  32
    uint64_t end_ns;      //  40
    uint64_t cpu_ns;      //  48 and the next six: 0 with GP_SPAN_NO_TIMES
    uint64_t slice_ns;    //  56
    uint64_t blocked_ns;  //  64
    uint64_t ready_ns;    //  72
    uint64_t parked_ns;   //  80
    uint64_t waiting_ns;  //  88
    uint64_t switches;    //  96
    uint32_t trace;       // 104 trace index
    uint32_t thread;      // 108 thread index at its beginning, 0 = not known
    uint32_t stack_id;    // 112 at its beginning, 0 = not kept
    uint16_t kind;        // 116 prof_span_kind_t
    uint16_t flags;       // 118 enum gp_span_flag
    uint16_t name_len;    // 120
    uint16_t field_count; // 122
    uint32_t fields_len;  // 124
} gp_span_record_t;       // 128, then the name, then the fields, each a key, NUL, a value, NUL; padding to 8
// clang-format off
#define GP_FIELDS_span(F)                                                                                              \
    F(span, coro_id, CORO) F(span, end_coro_id, CORO) F(span, start_ns, TIME) F(span, end_ns, TIME)                    \
    F(span, trace, TRACE) F(span, thread, THREAD) F(span, stack_id, STACK)
// clang-format on

// A span as it was while it was open, for when the process is killed: greenprof recover makes spans of those that have
// no span record, of each the latest.
typedef gp_span_record_t gp_open_span_record_t;

// A live coroutine, at one moment. A file may hold several censuses: the highest number is the latest.
typedef struct gp_census_record {
    uint64_t coro_id;      //  0
    uint64_t time_ns;      //  8 when it was looked at
    uint64_t state_ns;     // 16 time in its state; GP_CENSUS_UNKNOWN: since its birth
    uint32_t number;       // 24 of the census: 1, 2, ...
    uint32_t trace;        // 28 trace index
    uint32_t stack_id;     // 32 0 = none is known
    uint32_t thread;       // 36 index of the thread that runs it, or ran it, where noted; 0 = none
    uint16_t state;        // 40 enum gp_census_state
    uint16_t flags;        // 42 enum gp_census_flag
    uint32_t stack_age_us; // 44 of a running one: how long before time_ns it was sampled there; 0 = still there
} gp_census_record_t;      // 48
#define GP_FIELDS_census(F)

typedef struct gp_counters_record {
    uint64_t time_ns;        // 0
    uint64_t process_cpu_ns; // 8 exact CPU time of the process since start, greenprof's own thread excluded
    uint64_t own_cpu_ns;     // 16 CPU time of greenprof's own thread
    uint64_t count;          // 24 how many counters follow (GP_COUNTER_COUNT when written)
} gp_counters_record_t;      // 32, then uint64_t[count]

enum gp_end_reason {
    GP_END_EXIT = 0,    // the process
    GP_END_STOPPED = 1, // the sampling
    GP_END_EXEC = 2,
    GP_END_FAILED = 3,  // the file could not be written any further
    GP_END_CENSUS = 4,  // the file is a census, not a capture
    GP_END_FULL = 5,    // recording: the file has the size that was asked for
    GP_END_ASKED = 6,   // recording: greenprof stop
    GP_END_TURNED = 7,  // recording goes on in the next part
    GP_END_KILLED = 8,  // the process left no end; greenprof recover wrote this one
    GP_END_SANDBOX = 9, // the process is under a filter, or in a mode, in which a call of greenprof's would kill it
};

typedef struct gp_end_record {
    uint64_t time_ns; // 0
    uint32_t reason;  // 8 enum gp_end_reason
    uint32_t error;   // 12 GP_END_FAILED: errno value
} gp_end_record_t;    // 16
#define GP_FIELDS_end(F)
