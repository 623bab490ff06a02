// SPDX-License-Identifier: MIT
// Spans of a store, for `greenprof trace`.
#pragma once

#include "traces/sources.h"

// Add what a store, clickhouse://..., has of what is wanted. Stacks it has none of, by span.
//   url: has no password from then on; what it becomes is there as long as the process.
// Returns 0 or an exit status, with a message.
int gp_trace_store_read(gp_spans_t *set, char **url, gp_wanted_t wanted);
