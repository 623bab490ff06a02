// SPDX-License-Identifier: MIT
// The latency from which on a request is slow: a time, or a percentile of its endpoint's requests so far.
//
// Model: each endpoint's latencies are counted in eight steps for each power of two: a percentile is at most an eighth
// too high. The counts are halved now and then, so that an endpoint may change. Threads: one at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

typedef struct gp_slow_endpoint gp_slow_endpoint_t;

typedef struct gp_slow_target {
    uint64_t over_ns; // 0 = by percentile
    double share;     // 0.99
    gp_slow_endpoint_t *endpoints;
    size_t count, capacity;
    gp_index_t index;
} gp_slow_target_t;

#define GP_SLOW_TARGET_WORDS "a time, as 250ms or 1.5s, or a percentile of the endpoint's, p50 to p99.99"

// Returns whether `text` is one: "250ms", "1.5s", "p99", "p99.9".
bool gp_slow_target_parse(gp_slow_target_t *target, const char *text);

// Returns whether `text` is a time: "250ms", "1.5s", "80us", up to a day.
bool gp_slow_time_parse(const char *text, uint64_t *ns);

// Count a request, and tell whether it is slow by the ones before: not by a percentile before there are 100.
// Returns the latency from which on it would be; UINT64_MAX = not known yet, or memory is short.
uint64_t gp_slow_target_add(gp_slow_target_t *target, const char *endpoint, uint64_t latency_ns);

void gp_slow_target_free(gp_slow_target_t *target);
