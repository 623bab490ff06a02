// SPDX-License-Identifier: MIT
// Findings of a capture, in sentences, ordered by their cost to users.
//
// Model: a finding is a sentence with its number, its code, who was hurt, how sure it is, and the command that shows
// it. Caveats come first: losses and missing names that could change the rest. None is made without its evidence, so
// that there may be none at all.
//
// Order of calls: make -> any use -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "report/report_options.h"

enum {
    GP_FINDING_TEXT = 1024,
    GP_FINDINGS_MAX = 32,
    GP_EXPLAIN_UNASKED_MOST = 5000000, // samples and activities: outputs that are about something else say nothing then
};

typedef enum gp_finding_rank {
    GP_FINDING_CAVEAT, // what could change the rest
    GP_FINDING_FAULT,
    GP_FINDING_MACHINE, // what no code of the program is to blame for
    GP_FINDING_NOTE,    // where time goes, which need be no fault
} gp_finding_rank_t;

typedef struct gp_finding {
    const char *kind; // "held-loop", ...: as in JSON and in conditions; never changes
    gp_finding_rank_t rank;
    uint64_t cost_ns;               // what it cost, by which findings are ordered
    uint64_t times;                 // how often
    uint32_t line;                  // 0 = not known
    char function[256], file[256];  // "" = it is about no code
    char sentence[GP_FINDING_TEXT]; // without a full stop
    char hurt[160], sure[240];      // "" = nothing to say
    char show[320];                 // what stands behind "greenprof COMMAND FILE"; its first word is the command
} gp_finding_t;

typedef struct gp_explaining gp_explaining_t;

typedef struct gp_findings {
    gp_finding_t *items; // [count], the order in which they are told
    size_t count;
    uint64_t victim_ns;   // delays by long slices, together; 0 = none
    bool is_victim_known; // something told when coroutines became ready
    uint64_t p99_ns;      // of the latency of requests; 0 = there are none
    size_t requests;
} gp_findings_t;

// Make them. Returns NULL and errno.
//   dataset: with GP_KEEP_HOGS and GP_KEEP_SPANS.
//   trace:  number of the trace that is asked about; 0 = all.
gp_findings_t *gp_explain(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t trace);

// The same in a reading that has other takers too: begin -> the reading is read -> end, with its result.
// Returns NULL and errno.
gp_explaining_t *gp_explain_begin(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t trace,
                                  gp_reading_t *reading);
gp_findings_t *gp_explain_end(gp_explaining_t *explaining, int result);

// The trace that an output with another subject may explain besides (0 = all); GP_INDEX_NONE = none: of a part of a
// capture other than one trace, or of so much, the output would take twice its time.
uint32_t gp_explain_trace_beside(const gp_dataset_t *dataset, const gp_report_options_t *options);

// Make them for an output with another subject, where they are of use. Returns NULL where they are not, or memory is
// short.
gp_findings_t *gp_explain_beside(const gp_dataset_t *dataset, const gp_report_options_t *options,
                                 gp_symbolizer_t *symbolizer);

// NULL is allowed.
void gp_findings_free(gp_findings_t *findings);
