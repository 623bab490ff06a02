// SPDX-License-Identifier: MIT
// The input of every exporter: weighted stacks with names, from a capture file or from a profile in this process.
//
// Model: a gp_report_t is a table of frames, a table of rows (distinct stack, weight, samples) and totals. Built by
// gp_report_from_capture() or gp_report_from_snapshot(), a report is immutable afterwards, owns all its memory and is
// freed whole. Weights are nanoseconds of the chosen clock and already scaled: the rows' weights sum to total_ns
// exactly.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct gp_report_frame {
    const char *function; // demangled name, "module+0x1234" where there is none, "[switching]" for
                          // a pseudo-frame
    const char *file;     // source file, else the module's path, "~" for a pseudo-frame
    uint32_t line;        // line of the program counter, 0 = unknown
    uint32_t first_line;  // line at which the function is defined, 0 = unknown
    const char *module;   // path of the module, "" for a pseudo-frame
    bool pseudo;          // "[switching]", "[thread NAME]", ...: no code behind it
    // Only where the exporter wants GP_WANT_ADDRESSES, else zeros:
    bool inlined;     // into the frame before it on the stack, which has the same address
    uint32_t mapping; // number in `mappings` plus 1; 0 = none
    uint64_t address; // in the process, within the instruction; 0 = unknown
} gp_report_frame_t;

// A module as it was mapped.
typedef struct gp_report_mapping {
    const char *path;
    uint64_t start, end;  // [start, end)
    const char *build_id; // lower-case hex, "" when unknown
} gp_report_mapping_t;

// The owner of a row's samples: NULL and 0 where unknown, or not applicable.
typedef struct gp_label {
    const char *coroutine; // name as in "[coroutine 12 NAME]"; "[thread NAME]" for a thread's stack
    uint64_t coroutine_id; // number in the capture, 1, 2, ...
    const char *thread;    // name of the thread that it ran on
    uint32_t thread_id;    // that thread's id in the system
    const char *trace;     // trace id, 32 hex digits
    uint32_t request;      // of critical paths with GP_WANT_PAGE: number of the request, plus 1
} gp_label_t;

typedef struct gp_report_row {
    const uint32_t *frames; // frame indices [depth], ROOT FIRST
    uint32_t depth;
    uint32_t label; // number in `labels` plus 1; 0 = none. Only where it is wanted
    uint32_t tick;  // part of the time, plus 1; 0 = none. Only with GP_WANT_PAGE: see gp_page_t
    uint32_t path;  // rows with the same number, at most path_count, have the same frames; 0 = says nothing
    uint64_t weight_ns;
    uint64_t samples;
    double squares_ns2; // sum of the squares of the samples' weights, which its error rests on; 0 =
                        // not known (a profile of this process)
} gp_report_row_t;

// The weight of rows.
typedef enum gp_measure {
    GP_MEASURE_CPU,     // on-CPU time
    GP_MEASURE_WALL,    // wall clock: stacks that do not run end in "[parked]", "[ready]", ...
    GP_MEASURE_DELAY,   // for how long others were ready meanwhile and had to wait
    GP_MEASURE_LATENCY, // of requests: stacks on their critical paths, which end as those of the wall clock do
} gp_measure_t;

// The timeline: what happened when, for the formats that want it. All times are ns since the start.
enum { GP_NO_TRACK = UINT32_MAX };

typedef struct gp_track { // a coroutine, or a thread's own stack
    const char *name;     // "[coroutine 12 NAME]" or "[thread NAME]"
    uint64_t coroutine_id;
    uint32_t parent; // number of the track of its spawner, or GP_NO_TRACK
    bool is_thread;
    uint64_t birth_ns;
} gp_track_t;

// Active in [start_ns, left_ns), then waiting in [left_ns, end_ns); either may be empty. Active is:
// it ran, for slice_ns in all, and waited for short times only. The next activity of the track starts
// at end_ns, but for those that were not recorded.
typedef struct gp_activity {
    uint32_t track;
    uint32_t waker; // number of the track that made it ready, or GP_NO_TRACK
    uint64_t start_ns, left_ns, end_ns, slice_ns;
    uint64_t ready_ns;       // from when on it was runnable, in [left_ns, end_ns]
    bool is_ready_known;     // else it was not reported
    bool goes_on;            // at end_ns it was not switched to: the coroutine ended, or the record
    uint32_t thread_id;      // system's id of the thread it started on, 0 = not known
    const char *thread_name; // "" = not known
    const char *trace;       // trace id, 32 hex digits, or NULL
} gp_activity_t;

typedef struct gp_timed_stack { // a distinct stack
    const uint32_t *frames;     // frame indices [depth], ROOT FIRST
    uint32_t depth;
} gp_timed_stack_t;

typedef struct gp_timeline {
    uint32_t pid;
    const gp_track_t *tracks;
    uint32_t track_count;
    // Activities by track, then by start: may be more than memory should hold. gp_timeline_each_activity() hands them
    // out.
    struct gp_timeline_source *source; // reads activities anew; NULL = they are here:
    const gp_activity_t *activities;
    size_t activity_count;
} gp_timeline_t;

// A part of a request's critical path. They come request by request, in order of time.
typedef struct gp_page_segment {
    uint64_t from_ns, to_ns;
    uint32_t request, coro; // numbers
    uint32_t state;         // enum gp_sample_kind
    uint32_t stack;         // in `stacks`
} gp_page_segment_t;

// The parts of a page besides rows and the timeline; its moments are ns since the start as well.
typedef struct gp_page {
    const struct gp_dataset *dataset;
    const struct gp_requests *requests;
    const bool *chosen;       // bool[requests->count]: those that the options choose
    struct gp_report *delays; // rows of GP_MEASURE_DELAY, with labels; NULL = nothing is known
    struct gp_report *paths;  // rows of GP_MEASURE_LATENCY, with labels; NULL = no request was chosen
    struct gp_symbolizer *symbolizer;
    const gp_timed_stack_t
        *spawns;      // by coroutine of the dataset: where it was spawned, in frames of the report; depth 0 = not known
    uint64_t tick_ns; // a row's tick begins at (tick - 1) * tick_ns
    gp_measure_t first_measure; // as asked for: shown first
    const gp_page_segment_t *segments;
    size_t segment_count;
    const gp_timed_stack_t *stacks; // of segments, whose frames are those of `paths`
    uint32_t stack_count;
    struct gp_findings *findings; // of what is shown; NULL = a part, or too much, was asked for
} gp_page_t;

// The basis of a report's total.
typedef enum gp_basis {
    GP_BASIS_EXACT,     // exact CPU time of what was asked for
    GP_BASIS_ESTIMATED, // a part of an exact time (scope_ns), as the samples divide it
    GP_BASIS_SAMPLED,   // the sum of the samples: no exact time is known
} gp_basis_t;

#define GP_CALL_NO_CALLER UINT32_MAX

// Counts of exact mode, of one function as called by another. "Primitive": not while another call of the same kind was
// in progress on the coroutine.
typedef struct gp_call {
    uint32_t caller, callee; // frames; caller GP_CALL_NO_CALLER: no caller was seen
    uint64_t calls;
    uint64_t primitive_calls;           // of callee, by whomever
    uint64_t primitive_edge_calls;      // of callee by caller
    uint64_t self_cpu_ns, self_wait_ns; // in callee itself; waiting: all time off the CPU
    uint64_t cpu_ns, wait_ns;           // in all, of the callee's primitive calls
    uint64_t edge_cpu_ns, edge_wait_ns; // in all, of this pair's primitive calls
} gp_call_t;

typedef struct gp_report {
    const gp_report_frame_t *frames;
    uint32_t frame_count;
    const gp_report_row_t *rows; // distinct stacks (and labels), heaviest first
    uint32_t row_count;
    uint32_t path_count;
    bool in_parts;            // rows are too many to be kept: gp_report_each_part() makes them
    bool rooted;              // of what they are divided into, which is their first frame (--by)
    const gp_label_t *labels; // NULL unless wanted
    uint32_t label_count;
    const gp_report_mapping_t *mappings; // NULL unless wanted
    uint32_t mapping_count;
    const gp_timeline_t *timeline; // NULL unless wanted; a profile of this process has none
    uint64_t total_ns;             // CPU time of what was asked for: what the rows add up to
    gp_basis_t basis;              // whether it is exact
    uint64_t scope_ns;             // total_ns before stacks were left out by what is on them
    gp_measure_t measure;
    bool is_unknown;     // delays: nothing ever said that a coroutine was ready; all numbers are 0
    uint64_t unseen_ns;  // delays: of total_ns, when others were ready at most: their loop had not looked
    uint64_t sampled_ns; // the sum of the on-CPU samples alone: the self-audit's other half,
    uint64_t cpu_ns;     // and of what: exact on-CPU time of the same scope, 0 = not known
    double variance_ns2; // that chance gives sampled_ns; 0 = not known
    uint64_t samples;
    uint64_t duration_ns; // wall time covered
    uint64_t start_realtime_ns;
    uint32_t frequency_hz;
    uint32_t pid;                // 0 = not known, or of several processes
    const char *title;           // program name or profile name
    const char *const *resource; // key, value, key, ..., NULL: what else is known of what ran; NULL = nothing
    const char *source;          // the file it is of; NULL = a profile of this process
    const char *command;         // the command that makes it; NULL = none
    bool with_source;            // a page shows source lines
    uint64_t per[2];             // divisor of times on a page of two, as a fraction; zeros = each side's total
    const char *unit;            // of what comes out: "%", "ms a second"; NULL = a page of one
    const char *root_by;         // the first root of a page: "coroutine", "trace"; NULL = nothing
    const uint64_t *counters;    // [counter_count], enum gp_counter of capture/format.h
    uint32_t counter_count;
    const char *const *not_known; // of runtimes, and what is not seen of them: texts, then NULL; NULL = nothing
    uint64_t process_cpu_ns;      // of the whole program, by the kernel; 0 = not known
    double own_share;             // of it that greenprof itself took besides; 0 = not known
    // Exact mode: what was counted, by caller and callee; a pair may come more than once. Rows of a profile are its
    // calls as well, rows of a capture are samples all the same.
    bool exact_calls; // call counts are real, else they are numbers of samples
    bool exact_rows;  // so are `samples` of rows
    const gp_call_t *calls;
    uint32_t call_count;
    gp_page_t *page; // NULL unless wanted; a profile of this process has none
} gp_report_t;

// Hand out all rows, in one part or several: rows of the same label and root are in one part; in a `rooted` report, all
// rows of the same root. In a part the heaviest come first, or with GP_WANT_TOGETHER a stack's rows; it is gone when
// the call returns.
//   take: rows gp_row_t[count]; returns 0, or a negative errno value that ends it and is returned.
// Returns 0 or a negative errno value: of `take`, -ENOMEM, or of a temporary file.
typedef int gp_rows_taker_t(void *context, const gp_report_row_t *rows, size_t count);
int gp_report_each_part(const gp_report_t *report, gp_rows_taker_t *take, void *context);

// Whether there is no row at all.
bool gp_report_is_empty(const gp_report_t *report);

// An exporter's needs besides stacks of functions and lines.
enum gp_want {
    GP_WANT_LABELS = 1,    // rows apart by coroutine, thread and trace; a profile of this process
                           // has none
    GP_WANT_ADDRESSES = 2, // frames apart by address, and the mappings they are in
    GP_WANT_TIMELINE = 4,  // activities
    GP_WANT_HEAVIEST = 8,  // rows of the GP_HEAVIEST_MAX heaviest coroutines apart, with labels that
                           // have no thread and no trace
    GP_WANT_PAGE = 16,     // GP_WANT_LABELS and GP_WANT_TIMELINE of the wall clock, and a page, where there can be one
    GP_WANT_TOGETHER = 32, // where rows come in parts without roots: those of a stack together, not by label
};

enum { GP_HEAVIEST_MAX = 50 }; // more make too long a menu

// An output format: a row of the exporter table.
typedef struct gp_exporter {
    const char *name;   // as in --format
    const char *suffix; // usual file name suffix, ".prof"
    const char *what;   // a line for help texts
    bool binary;        // refuse to write it to a terminal
    unsigned wants;     // enum gp_want bits
    // Write `report` to `out`. Returns 0 or a negative errno value (-ENOTSUP: the format wants a timeline and there is
    // none); the caller checks ferror() and closes.
    int (*write)(const gp_report_t *report, FILE *out);
} gp_exporter_t;

// Find an exporter by name; NULL when there is none.
const gp_exporter_t *gp_exporter_find(const char *name);
// The whole table, ended by an entry with a NULL name.
const gp_exporter_t *gp_exporter_table(void);
