// SPDX-License-Identifier: MIT
// A capture, summed up: definitions, sums by (coroutine, trace), the ledger, the counters.
//
// Model: gp_dataset_load() reads a capture once, front to back. Its size grows with the number of distinct stacks,
// coroutines and traces, not with the number of samples: passes that need more than sums take the samples from one
// further reading, gp_dataset_read(), once it is known which are chosen and what each is scaled by. References to
// definitions lost with a damaged chunk get a placeholder, so that no time disappears.
//
// Order of calls: load -> any reads -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "capture/several/captures.h"
#include "facts/facts.h"
#include "model/span.h"

typedef struct gp_sampled {
    uint64_t ns, samples;
} gp_sampled_t;

typedef struct gp_dataset_coro { // sums of the coroutine of the same number in `facts`
    gp_ledger_t ledger;
    bool is_whole; // with `switches` 0: of a thread that never had a coroutine, with all its sleeps and delays
    bool is_switched;
    uint32_t traces; // how many traces it worked for
    uint32_t trace;  // the last one of them: number in `traces`
    uint32_t share;  // the last one of its shares that was looked for, plus 1
    uint32_t stack;  // the deepest of some of its samples': number in `stacks`; 0 = not known
    // Samples of waits without an end yet, and how much of these the ledger took back, as no end came: `lasting_kept`
    // of each counts. Sums of the whole capture.
    uint64_t lasting_ns, taken_back_ns;
    double lasting_kept;
} gp_dataset_coro_t;

typedef struct gp_dataset_share { // of a (coroutine, trace)
    uint32_t coro, trace;
    gp_ledger_t ledger;                  // sums modulo 2^64 until all is read
    gp_sampled_t sampled[GP_KIND_COUNT]; // samples
    uint64_t lasting_ns[GP_KIND_COUNT];  // of these, see gp_dataset_is_lasting()
} gp_dataset_share_t;

typedef struct gp_dataset_thread_sum { // on-CPU samples on one thread
    uint32_t index;                    // in the capture: see gp_dataset_thread_find()
    gp_sampled_t sampled;
} gp_dataset_thread_sum_t;

typedef struct gp_dataset_hog { // a long slice
    uint64_t id;
    uint32_t coro, trace; // numbers
    uint32_t thread;      // index in the capture
    uint64_t start_ns, duration_ns;
    const gp_hog_stack_t *stacks; // [stack_count]; stack_id is the number in `stacks`
    uint32_t stack_count;
} gp_dataset_hog_t;

typedef struct gp_dataset_delay { // a coroutine that was ready meanwhile
    uint32_t hog, coro, trace;    // numbers
    uint64_t delay_ns, unseen_ns; // unseen: of it, when it was ready at most
} gp_dataset_delay_t;

typedef struct gp_dataset_span { // an operation with a beginning and an end
    gp_span_t is;                // its moments are ns since the capture's start; trace and stack are below
    uint32_t parent;             // number; GP_INDEX_NONE = none, or not in the capture: a root, a request
    uint32_t coro, trace, stack; // numbers
    uint32_t field_count;
    const char *name;
    const prof_field_t *fields; // [field_count]
} gp_dataset_span_t;

// A part of the capture's time, ns since its start: [from_ns, to_ns).
typedef struct gp_dataset_window {
    uint64_t from_ns, to_ns;
} gp_dataset_window_t;

// When there were requests of a trace: outside of it, what coroutines do is in no trace.
typedef struct gp_dataset_life {
    uint32_t first, count; // in `lifetimes`; 0 of them: it is not known, and all counts
} gp_dataset_life_t;

// When coroutines ran for a trace.
typedef struct gp_dataset_extent {
    uint32_t trace; // index in the capture
    uint64_t first_ns, last_ns;
    uint64_t coro_id, last_coro_id; // that ran first, and last
} gp_dataset_extent_t;

// When a coroutine was at work for a trace, waits included.
typedef struct gp_dataset_work {
    uint32_t coro, trace; // numbers
    uint64_t from_ns, to_ns;
} gp_dataset_work_t;

// Tables that are kept only where they will be looked at.
enum gp_dataset_keep {
    GP_KEEP_HOGS = 1,     // long slices and delays
    GP_KEEP_SPANS = 2,    // spans, in the order of their beginnings
    GP_KEEP_REQUESTS = 4, // of these, the requests, and the lifetimes that they give their traces
    GP_KEEP_WORKS = 16,   // who worked for which trace, and when: for critical paths
    GP_KEEP_PLAIN = 8,    // GP_PLAIN_WORDS of samples, as many as fit, for a reading that asks for no more
};

// The words that are read of on-CPU samples, where neither moment nor thread nor trace counts.
#define GP_PLAIN_WORDS                                                                                                 \
    (GP_SAMPLE_WORDS(weight_ns) | GP_SAMPLE_WORDS(coro_id) | GP_SAMPLE_WORDS(stack_id) | GP_SAMPLE_WORDS(kind))

typedef struct gp_dataset {
    gp_facts_t facts;
    unsigned keep; // enum gp_dataset_keep bits
    gp_captures_t captures;
    // Samples outside it are left out. How much exact time lies within it is unknown, so that
    // the shares have none; counters and threads are those of the whole capture.
    gp_dataset_window_t window;
    bool windowed;
    gp_reader_summary_t summary;
    GP_TABLE(gp_dataset_coro_t) coros; // by number in `facts`
    GP_TABLE(gp_dataset_share_t) shares;
    GP_TABLE(gp_dataset_thread_sum_t) thread_sums;
    GP_TABLE(gp_dataset_hog_t) hogs;
    GP_TABLE(gp_dataset_delay_t) delays;
    GP_TABLE(gp_sum_record_t) sums; // of samples that are the sum of several
    gp_index_t sum_index;
    GP_TABLE(gp_dataset_span_t) spans;
    GP_TABLE(gp_dataset_extent_t) extents; // of traces, where there are requests
    GP_TABLE(gp_dataset_work_t) works;     // with GP_KEEP_WORKS
    gp_dataset_window_t *lifetimes;        // of traces: distinct, in order
    gp_dataset_life_t *lives;              // by trace; NULL = there are none
    GP_TABLE(gp_call_count_t) calls;       // exact mode: the last record of each pair of functions
    GP_TABLE(gp_census_record_t) census;   // of the latest one in the file, as it was written
    uint32_t census_number;
    bool has_gil;     // a thread waited for the lock of its interpreter
    bool has_lock;    // or for one of the program's
    bool has_queued;  // a call waited in the queue of a pool
    bool has_sleeps;  // samples of threads that sleep on their own stacks
    bool tells_ready; // samples: something reported that a coroutine had become ready, other than by its birth
    uint64_t sampled_ns, samples;           // on-CPU samples within the window
    uint64_t samples_read, activities_read; // of all kinds, those outside the window included
    gp_arena_t arena;
} gp_dataset_t;

// Read a capture.
//   path, fd: stays the caller's. A pipe cannot be read again.
//   keep:  enum gp_dataset_keep bits.
//   error: what is wrong when NULL is returned.
// Returns the dataset (dataset->summary says what is missing), or NULL and errno.
gp_dataset_t *gp_dataset_load(const char *path, unsigned keep, char error[GP_READER_ERROR_SIZE]);
gp_dataset_t *gp_dataset_load_fd(int fd, unsigned keep, char error[GP_READER_ERROR_SIZE]);
// The same for several captures, which are open, or for one; they are the dataset's from then on, also on failure.
//   window: the part of their time; NULL = all of it.
// On failure captures->at says which one is wrong.
gp_dataset_t *gp_dataset_load_captures(gp_captures_t *captures, unsigned keep, const gp_dataset_window_t *window,
                                       char error[GP_READER_ERROR_SIZE]);

// A span without another of its process around it.
static inline bool gp_dataset_is_request(const gp_dataset_span_t *span)
{
    return span->is.parent_id == 0 || span->is.flags & GP_SPAN_REMOTE_PARENT;
}

// Is it known how long a request lived? Unknown where only prof_trace_set() told its beginning, and nothing its end.
static inline bool gp_dataset_has_end(const gp_dataset_span_t *span)
{
    return (span->is.flags & (GP_SPAN_IMPLICIT | GP_SPAN_OPEN)) != (GP_SPAN_IMPLICIT | GP_SPAN_OPEN);
}

// Who takes samples and activities of one reading: all that is asked for is collected first. Zero-initialized = nobody.
enum { GP_READING_MOST = 12 };
typedef struct gp_reading {
    gp_taker_t takers[GP_READING_MOST];
    size_t count; // above GP_READING_MOST: reading fails
} gp_reading_t;

//   handlers: of these `samples` and `activity` are called, for those outside the window, too. Coroutines, traces and
//             stacks that they refer to are all known.
static inline void gp_reading_add(gp_reading_t *reading, const gp_reader_handlers_t *handlers, void *context)
{
    if (reading->count++ < GP_READING_MOST)
        reading->takers[reading->count - 1] = (gp_taker_t){handlers, context, NULL};
}

// Read the samples and activities of the capture again, as many as there were when it was loaded: a process that still
// runs may have written more. Time outside the lifetime of its trace counts for no trace. Where nobody takes, nothing
// is read.
// Returns 0 or a negative errno value.
int gp_dataset_read(const gp_dataset_t *dataset, gp_reading_t *reading);
// The same for one that takes.
int gp_dataset_read_for(const gp_dataset_t *dataset, const gp_reader_handlers_t *handlers, void *context);

// The times of an activity within [from_ns, to_ns): its slices, in part where it is there in part, and its waits.
gp_ledger_t gp_dataset_activity_times(const gp_activity_record_t *activity, uint64_t from_ns, uint64_t to_ns);

// Whether a sample or an activity is within the window.
static inline bool gp_dataset_has_sample(const gp_dataset_t *dataset, const gp_sample_record_t *sample)
{
    return !dataset->windowed ||
           (sample->time_ns >= dataset->window.from_ns && sample->time_ns < dataset->window.to_ns);
}

// Have coroutines time of that kind? A column without any is left out.
static inline bool gp_dataset_has_kind(const gp_dataset_t *dataset, enum gp_sample_kind kind)
{
    return kind == GP_KIND_GIL      ? dataset->has_gil
           : kind == GP_KIND_LOCK   ? dataset->has_lock
           : kind == GP_KIND_QUEUED ? dataset->has_queued
                                    : true;
}

// Is a sample a part of a wait that had not ended?
static inline bool gp_dataset_is_lasting(const gp_sample_record_t *sample)
{
    return sample->thread == 0 && (sample->kind == GP_KIND_PARKED || sample->kind == GP_KIND_READY ||
                                   sample->kind == GP_KIND_WAITING || sample->kind == GP_KIND_QUEUED);
}

// The sum that a sample stands for; NULL = the sample is one by itself.
const gp_sum_record_t *gp_dataset_find_sum(const gp_dataset_t *dataset, const gp_sample_record_t *sample);
static inline const gp_sum_record_t *gp_dataset_sum_of(const gp_dataset_t *dataset, const gp_sample_record_t *sample)
{
    return dataset->sums.count > 0 ? gp_dataset_find_sum(dataset, sample) : NULL;
}

bool gp_dataset_has_activity(const gp_dataset_t *dataset, const gp_activity_record_t *activity);

// Did anything report when coroutines became ready? For coroutines that have not run yet their birth does, for no
// others.
bool gp_dataset_knows_ready(const gp_dataset_t *dataset);

// Numbers in the tables, GP_INDEX_NONE when unknown.
static inline uint32_t gp_dataset_module_find(const gp_dataset_t *dataset, uint32_t id)
{
    return gp_table_find(&dataset->facts.modules.table, id);
}

static inline uint32_t gp_dataset_coro_find(const gp_dataset_t *dataset, uint64_t id)
{
    return gp_table_find(&dataset->facts.coros.table, id);
}

static inline uint32_t gp_dataset_thread_find(const gp_dataset_t *dataset, uint32_t index)
{
    return gp_table_find(&dataset->facts.threads.table, index);
}

//   index, id: in the capture.
static inline uint32_t gp_dataset_trace_index_find(const gp_dataset_t *dataset, uint32_t index)
{
    return gp_table_find(&dataset->facts.traces.table, index);
}

static inline uint32_t gp_dataset_stack_find(const gp_dataset_t *dataset, uint32_t id)
{
    return gp_table_find(&dataset->facts.stacks.table, id);
}

//   coro, trace: numbers.
static inline uint32_t gp_dataset_share_find(const gp_dataset_t *dataset, uint32_t coro, uint32_t trace)
{
    return gp_table_find(&dataset->shares.table, gp_table_pair(coro, trace));
}

// With GP_KEEP_SPANS.
static inline uint32_t gp_dataset_span_find(const gp_dataset_t *dataset, uint64_t id)
{
    return gp_table_find(&dataset->spans.table, id);
}

uint32_t gp_dataset_trace_find(const gp_dataset_t *dataset, const uint8_t id[16]);

// Exact CPU time of the process on threads that were sampled; 0 = not known. Threads without signals ran code without
// samples: their time is told apart, not spread over others.
uint64_t gp_dataset_exact_ns(const gp_dataset_t *dataset);

// A thread's own stack without coroutines, of which the ledger has all: an ordinary thread's.
//   coro: number.
static inline bool gp_dataset_is_ordinary(const gp_dataset_t *dataset, uint32_t coro)
{
    const gp_dataset_coro_t *sums = &dataset->coros.items[coro];
    return dataset->facts.coros.items[coro].record.kind == GP_CORO_THREAD && sums->is_whole && !sums->is_switched;
}

// Time of one kind in a ledger of a coroutine. All that a call was ready for in a pool of threads was time in its
// queue.
//   coro: number.
uint64_t gp_dataset_coro_ns(const gp_dataset_t *dataset, uint32_t coro, const gp_ledger_t *ledger,
                            enum gp_sample_kind kind);

// Does the capture have where ordinary threads slept?
bool gp_dataset_has_sleeps(const gp_dataset_t *dataset);

// A ledger's time of one kind of sample, ns. Sleeps of a thread's own stack beside coroutines are as sampled: none for
// loops, which wait there. Sleeps of an ordinary thread count only where there are samples of sleeps.
uint64_t gp_dataset_share_ns(const gp_dataset_t *dataset, const gp_dataset_share_t *share, enum gp_sample_kind kind);

void gp_dataset_free(gp_dataset_t *dataset);
