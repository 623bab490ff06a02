// SPDX-License-Identifier: MIT
// The requests of a capture: each with a beginning, an end, and what its coroutines did between the two.
//
// Model: a request is a span without a parent in this process. Its latency is the time between its beginning and its
// end, exact. Its ledger is the sum over the coroutines that worked for its trace meanwhile: resources, of which
// several may be used at once, and no latency. Where requests of one trace overlap, an activity belongs to the one that
// its coroutine, or the nearest of its spawners, began. A trace without a request known to have ended (a capture of an
// older version; prof_trace_set() that nothing took back) has one: from the first to the last moment at which a
// coroutine ran for it; `is_about` says so.
//
// Order of calls: create -> free. The dataset has GP_KEEP_REQUESTS or GP_KEEP_SPANS and outlives it. Threads: one at a
// time.
#pragma once

#include "facts/dataset.h"

typedef struct gp_request {
    uint32_t span;     // number; GP_INDEX_NONE = none was recorded
    uint32_t trace;    // number
    uint32_t coro;     // on which it began: number
    uint32_t end_coro; // on which it ended, or the same
    uint32_t endpoint; // number
    uint32_t coros;    // how many worked for it
    bool is_about;     // its beginning and end are those of what is known to have run
    bool is_cut;       // had not ended when the capture did: end_ns is that moment
    uint64_t start_ns, end_ns;
    gp_ledger_t ledger; // of all its coroutines; zeros where a part of the capture's time was chosen
    uint64_t queued_ns; // of its ready_ns, in queues of pools of threads
} gp_request_t;

typedef struct gp_endpoint { // requests of one kind and name
    uint32_t kind;           // prof_span_kind_t; 0 = no span was recorded
    const char *name;        // "" = none
    uint32_t count, failed;
    uint64_t total_ns;                       // of their latencies
    uint64_t p50_ns, p90_ns, p99_ns, max_ns; // latencies; each is that of a request (nearest rank)
} gp_endpoint_t;

typedef struct gp_requests {
    gp_request_t *items; // [count], by trace, then by beginning
    size_t count, capacity;
    uint32_t *first; // uint32_t[trace_count + 1]: those of trace t are [first[t], first[t + 1])
    gp_endpoint_t *endpoints;
    size_t endpoint_count, endpoint_capacity;
    gp_index_t endpoint_index;
    size_t left_out;                // requests that are not whole within the chosen part of the time
    struct gp_request_parts *parts; // of several requests of one trace, until the end
} gp_requests_t;

// Time of one kind in its ledger.
uint64_t gp_request_ns(const gp_request_t *request, enum gp_sample_kind kind);

// Find them. Returns NULL and errno.
//   ledgers: sum up what their coroutines did, too; of several requests of one trace, when `reading` is over: then
//            gp_requests_end() has all.
gp_requests_t *gp_requests_begin(const gp_dataset_t *dataset, bool ledgers, gp_reading_t *reading);
int gp_requests_end(gp_requests_t *requests);
// All at once, with a reading of its own where sums are not enough.
gp_requests_t *gp_requests_create(const gp_dataset_t *dataset, bool ledgers);

// To which request of its trace does what a coroutine does at a moment belong? Its number, or GP_INDEX_NONE.
uint32_t gp_requests_owner(const gp_dataset_t *dataset, const gp_requests_t *requests, uint32_t trace, uint32_t coro,
                           uint64_t at_ns);

// "rest_dispatch GET /servers", or what stands for that. Returns `text`.
const char *gp_endpoint_text(const gp_endpoint_t *endpoint, char *text, size_t size);

void gp_requests_free(gp_requests_t *requests);
