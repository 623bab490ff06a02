// SPDX-License-Identifier: MIT
// For which span a coroutine worked at a moment.
//
// Model: the innermost span open on the coroutine; where there was none, the span open on its spawner at its birth;
// where this is over, the nearest span around it that is not. Spans of other coroutines are not looked at.
//
// Order of calls: create -> find -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "facts/dataset.h"

typedef struct gp_span_finder gp_span_finder_t;

// dataset: loaded with GP_KEEP_SPANS; outlives the finder. Returns NULL when memory is short.
gp_span_finder_t *gp_span_finder_create(const gp_dataset_t *dataset);

// coro: number; time_ns: since the capture's start. Returns the span's number, or GP_INDEX_NONE.
uint32_t gp_span_find(gp_span_finder_t *finder, uint32_t coro, uint64_t time_ns);

void gp_span_finder_free(gp_span_finder_t *finder);
