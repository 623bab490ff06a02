// SPDX-License-Identifier: MIT
// Declarations that the files of the dataset share. Private to src/facts/dataset*.c.
#pragma once

#include "facts/dataset.h"

// Have sums for each coroutine that is known. Returns 0 or -ENOMEM.
int gp_dataset_sum_coros(gp_dataset_t *dataset);

// Find or add by the id that records use: numbers, GP_INDEX_NONE when memory is short.
static inline uint32_t gp_dataset_coro_need(gp_dataset_t *dataset, uint64_t id)
{
    uint32_t number = gp_table_need(&dataset->facts.coros.table, id);
    bool has_sums = number < dataset->coros.count || number == GP_INDEX_NONE || gp_dataset_sum_coros(dataset) == 0;
    return has_sums ? number : GP_INDEX_NONE;
}

static inline uint32_t gp_dataset_trace_need(gp_dataset_t *dataset, uint32_t index)
{
    return gp_table_need(&dataset->facts.traces.table, index);
}

static inline uint32_t gp_dataset_stack_need(gp_dataset_t *dataset, uint32_t id)
{
    return gp_table_need(&dataset->facts.stacks.table, id);
}

// Handlers of the reader; the context is the dataset.
int gp_dataset_on_samples(void *context, const gp_sample_record_t *samples, size_t count);
int gp_dataset_on_sum(void *context, const gp_sum_record_t *sum);
int gp_dataset_on_ledger(void *context, const gp_ledger_record_t *ledger);
int gp_dataset_on_hog(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks);
int gp_dataset_on_delay(void *context, const gp_delay_record_t *delay);
int gp_dataset_on_span(void *context, const gp_span_record_t *span, const char *name, const char *fields);

// Somebody ran for a trace from then to then.
int gp_dataset_extend(gp_dataset_t *dataset, uint32_t trace, uint64_t coro_id, uint64_t from_ns, uint64_t to_ns);

// After all is read: spans in order, and each with its parent. Returns 0 or -ENOMEM.
int gp_dataset_finish_spans(gp_dataset_t *dataset);

// After that: take what is outside its trace's lifetime from the shares. Returns 0 or a negative errno value.
int gp_dataset_apply_lifetimes(gp_dataset_t *dataset, char error[GP_READER_ERROR_SIZE]);

// gp_dataset_read() where there are lifetimes.
int gp_dataset_read_lifetimes(const gp_dataset_t *dataset, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE]);

// The sums of (coroutine, trace), found or added, until another is added; NULL when memory is short.
gp_dataset_share_t *gp_dataset_share_of(gp_dataset_t *dataset, uint32_t coro, uint32_t trace);

// After all is read: sums of coroutines and traces from those of their shares.
void gp_dataset_sum_up(gp_dataset_t *dataset);
