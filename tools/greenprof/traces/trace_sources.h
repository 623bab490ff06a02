// SPDX-License-Identifier: MIT
// The sources of `greenprof trace`: captures, JSON, directories, Redis, stores.
#pragma once

#include "report/input.h"
#include "traces/sources.h"

typedef struct gp_trace_sources { // zero-initialized = empty
    gp_spans_t spans;             // linked
    gp_input_t *captures;         // open, for their stacks
    size_t capture_count;
} gp_trace_sources_t;

// Read all of them, and link the spans.
//   names:  [count], as on the command line.
//   wanted: see gp_wanted_t.
// Returns 0 or an exit status, with a message. Close in both cases.
int gp_trace_sources_open(gp_trace_sources_t *sources, const gp_arguments_t *arguments, char **names, size_t count,
                          gp_wanted_t wanted);

// Find what the coroutines of a trace's requests did, in the captures. The same as below.
int gp_trace_sources_work(gp_trace_sources_t *sources, const gp_tree_trace_t *trace);

// Find what the captures sampled for the spans of a trace. Returns 0 or an exit status, with a message.
int gp_trace_sources_profile(gp_trace_sources_t *sources, const gp_tree_trace_t *trace);

// Say in sentences what made a trace slow: the first finding of each capture. Threads: as above. They are the set's.
//   verdicts: const char *[sources->capture_count]
// Returns how many there are.
size_t gp_trace_sources_verdicts(gp_trace_sources_t *sources, const gp_tree_trace_t *trace, const char **verdicts);

// Find the stacks at which spans of a trace began, where PROF_SPAN_STACK kept them. The same.
int gp_trace_sources_stacks(gp_trace_sources_t *sources, const gp_tree_trace_t *trace);

void gp_trace_sources_close(gp_trace_sources_t *sources);
