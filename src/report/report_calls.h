// SPDX-License-Identifier: MIT
// The calls of exact mode in a report. Private to src/report/report_*.c.
#pragma once

#include "report/report_builder.h"

// Add what was counted of a pair of functions; a pair that comes again is added up by its reader.
//   caller, callee: frames, gp_builder_function_frame(); a call with caller_loc 0 has no caller.
// Returns 0 or -ENOMEM.
int gp_builder_call(gp_builder_t *builder, const gp_call_count_t *record, uint32_t caller, uint32_t callee);

// All calls are there: the CPU time of `total_ns` (0 = not known) that no function has gets a call of its own, and a
// row where rows are calls. Hands them to the report.
int gp_builder_calls_finish(gp_builder_t *builder, uint64_t total_ns);
