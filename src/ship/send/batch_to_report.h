// SPDX-License-Identifier: MIT
// A part of a batch as a report, which every exporter can write: how batches become OTLP profiles and pprof.
//
// Model: rows [from, to) of a batch's samples have one time. A report has the rows of one measure. CPU time has the
// samples that ran; the others' stacks end in the coroutine's state ("[parked]").
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include "report/report.h"
#include "ship/rows/row.h"

#define GP_BATCH_GRAIN_NS 10000000000ull // of a batch that has one moment only

typedef struct gp_batch_part { // zero-initialized = before the first one
    size_t from, to;           // rows of one time
    size_t measures;           // of these rows, so far
    gp_measure_t measure;
} gp_batch_part_t;

// Go to the next rows of one time, or to the next measure of the same. Returns whether there is one.
bool gp_batch_next_part(const gp_batch_t *batch, gp_batch_part_t *part);

// For how long a batch's rows of one time stand.
uint64_t gp_batch_grain_ns(const gp_batch_t *batch);

// Make a report; NULL and errno: 0 = there is no row of this measure, ENOMEM.
//   with_labels: coroutines and traces apart; else a stack has one row.
//   resource: see gp_report_t; must live as long as the report, and the batch as well.
gp_report_t *gp_batch_to_report(const gp_batch_t *batch, const gp_batch_part_t *part, bool with_labels,
                                const char *const *resource);

void gp_batch_to_report_free(gp_report_t *report); // NULL is allowed
