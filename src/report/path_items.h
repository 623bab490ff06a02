// SPDX-License-Identifier: MIT
// The material of critical paths: the activities and samples of the coroutines that worked for a trace, sorted. Private
// to src/report/critical_path.c.
//
// Model: which coroutines worked for the chosen traces is known from the loading (GP_KEEP_WORKS), at most; in one
// reading their activities and samples of that time are collected, and it is settled when they really did. They come
// out trace by trace, by coroutine and time.
#pragma once

#include "report/requests.h"

// A request may be followed by what its coroutine did right after it: a result is often handed over there.
#define GP_PATH_SLACK_NS 5000000u

typedef struct gp_path_item { // an activity, or a sample
    uint32_t trace;           // number: of the request that it is collected for
    uint32_t coro;            // number
    uint32_t is_sample;
    uint32_t own_trace; // its own: number
    uint64_t start_ns;  // of a sample, its time
    uint64_t left_ns;   // of a sample, its weight
    uint64_t end_ns, slice_ns, ready_ns;
    uint64_t cpu_ns, blocked_ns, gil_ns, lock_ns; // of an activity: of slice_ns, where has_times
    uint32_t waker;                               // number, or GP_INDEX_NONE
    uint32_t thread;                              // index in the capture
    uint32_t stack;                               // of a sample: number
    uint32_t kind;                                // of a sample
    bool has_times;
    bool is_last; // of an activity: the coroutine was over at end_ns, or the capture
} gp_path_item_t;

typedef struct gp_path_group { // of one trace
    uint32_t trace;
    gp_path_item_t *activities, *samples; // by coroutine and time
    size_t activity_count, activity_capacity, sample_count, sample_capacity;
} gp_path_group_t;

typedef struct gp_path_items gp_path_items_t;

// Collect from a reading.
//   chosen: bool[trace_count]; outlives the items, as do the others.
// Returns NULL and errno; EINVAL: the dataset was loaded without GP_KEEP_WORKS.
gp_path_items_t *gp_path_items_begin(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                                     gp_reading_t *reading);

// After it: hand out each trace that was chosen and has anything.
int gp_path_items_each(gp_path_items_t *items, int (*take)(void *context, const gp_path_group_t *group), void *context);

// NULL is allowed.
void gp_path_items_free(gp_path_items_t *items);

// How much time a sample of running stands for at most.
uint64_t gp_path_reach_ns(const gp_dataset_t *dataset, uint64_t weight_ns);
