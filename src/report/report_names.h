// SPDX-License-Identifier: MIT
// A report's names for a capture's coroutines, traces and labels. Private to src/report/report_*.c.
#pragma once

#include "report/report_builder.h"

// Add the label of (coroutine, trace, thread) to the builder's.
//   thread: index in the capture.
// Returns its number plus 1, 0 when memory is short.
uint32_t gp_report_label(const gp_dataset_t *dataset, gp_builder_t *builder, uint32_t coro, uint32_t trace,
                         uint32_t thread);

// The same of a part of a request's critical path, on any thread.
uint32_t gp_report_request_label(const gp_dataset_t *dataset, gp_builder_t *builder, uint32_t coro, uint32_t trace,
                                 uint32_t request);

// Add the label of a coroutine, whatever it worked for.
uint32_t gp_report_coro_only_label(const gp_dataset_t *dataset, gp_builder_t *builder, uint32_t coro);
