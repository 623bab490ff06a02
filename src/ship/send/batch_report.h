// SPDX-License-Identifier: MIT
// A part of a batch as a report, which every exporter can write: how batches become OTLP profiles and pprof.
//
// Model: rows [from, to) of a batch's samples have one time. A report has those of one measure: CPU time is that of the
// samples that ran; of the others the stack ends in what the coroutine did instead ("[parked]").
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include "report/report.h"
#include "ship/rows/row.h"

#define GP_BATCH_GRAIN_NS 10000000000ull // of a batch that has one moment only

// Where the part that begins at row `from` ends: where the time changes, or after so many rows.
size_t gp_batch_part_end(const gp_batch_t *batch, size_t from);

// For how long a batch's rows of one time stand.
uint64_t gp_batch_grain_ns(const gp_batch_t *batch);

// Make a report; NULL and errno: 0 = there is no row of this measure, ENOMEM.
//   with_labels: coroutines and traces apart; else a stack has one row.
//   resource: see gp_report_t; must live as long as the report, and the batch as well.
gp_report_t *gp_batch_report(const gp_batch_t *batch, size_t from, size_t to, gp_measure_t measure, bool with_labels,
                             const char *const *resource);

void gp_batch_report_free(gp_report_t *report); // NULL is allowed
