// SPDX-License-Identifier: MIT
// The source of the data of `report`, `export` and their kind: a capture file, and the options that choose a part of
// it.
#pragma once

#include "choice.h"
#include "options.h"
#include "report/report_options.h"

typedef struct gp_input {
    const char *path; // for messages
    char *paths;      // backs `path`, where several captures are read as one
    gp_dataset_t *dataset;
    gp_symbolizer_t *symbolizer;
    gp_report_options_t options;
    gp_chosen_t chosen;
    gp_requests_t *requests;  // where rows are requests, traces or critical paths; else NULL
    bool *requests_chosen;    // bool[requests->count]
    bool has_stored_paths;    // samples are those of critical paths, by endpoint, as a store has them
    gp_path_sums_t path_sums; // of the report of critical paths that was made last
    regex_t *focus, *ignore;  // pointed to by options.stacks
    const char *root_by;      // --by; NULL = none
    bool with_source;         // --source
    char *choice;             // the options that choose a part, as they were given; "" = all of it
} gp_input_t;

// Check the form of the options that choose, then read the capture and look up what they name.
//   wants: enum gp_want bits of the format.
// Returns 0 or an exit status, with a message; damage in the capture is a warning only.
int gp_input_open(gp_input_t *source, const gp_arguments_t *arguments, unsigned wants);

// Open all FILEs of a command, and find out how they are read as one. Pipes are copied to temporary files.
//   what: for the progress: "reading".
//   wants: enum gp_want bits, for a store.
// Returns 0 or an exit status, with a message. Free in both cases.
int gp_input_open_captures(gp_captures_t *captures, const gp_arguments_t *arguments, const char *what, unsigned wants);

// The number of hosts of a store's samples, whose CPU time is then shown as cores; 0 = no store's, or it was not asked.
uint64_t gp_input_hosts(const gp_input_t *source);

// Make a report. Returns NULL and errno.
//   options: the source's, or changed ones.
gp_report_t *gp_input_report(const gp_input_t *source, const gp_report_options_t *options);

// Make a report that is grouped by nothing, and add up the on-CPU samples of what the source's
// options group by: traces, or coroutines. Returns NULL and errno.
//   sums: its items, which are there in either case, are to be freed.
gp_report_t *gp_input_report_sums(const gp_input_t *source, gp_group_sums_t *sums);

// Whether what was chosen is nothing at all: then there is a message. A part that took no time is not nothing.
// Returns 0 or EXIT_FAILED.
int gp_input_check_part(const gp_input_t *source, const gp_report_t *report);

// Why delays are not known, and what makes them known.
extern const char gp_input_unknown_ready[];

// Say why there is no report: error is an errno value. Returns the exit status.
int gp_input_fail(const gp_input_t *source, int error);

// Say what is missing in a capture, if anything is.
void gp_input_warn_damage(const char *path, const gp_reader_summary_t *summary);

// After the reports: say which modules are not the ones that were profiled any more.
void gp_input_warn_changed(const gp_input_t *source);

void gp_input_close(gp_input_t *source);
