// SPDX-License-Identifier: MIT
// Coroutines named by a report's labels, for formats that show each by itself.
// Threads: immutable after gp_report_coros_create(). Signals: not safe.
#pragma once

#include "report/report.h"

typedef struct gp_report_coro {
    const gp_label_t *label; // any of its labels
    uint64_t weight_ns;
} gp_report_coro_t;

// Find them, the heaviest first. The report must outlive the result.
//   count: how many there are.
// Returns an array to free(), or NULL and errno.
gp_report_coro_t *gp_report_coros_create(const gp_report_t *report, size_t *count);

// Whether a row is of a coroutine; of NULL every row is.
bool gp_report_coro_has(const gp_report_coro_t *coro, const gp_report_t *report, const gp_report_row_t *row);

// "coroutine 42 name" or "[thread name]". Returns `text`.
const char *gp_report_coro_name(const gp_report_coro_t *coro, char *text, size_t size);
