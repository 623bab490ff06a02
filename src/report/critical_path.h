// SPDX-License-Identifier: MIT
// The critical path of a request: each nanosecond between its beginning and its end goes to one coroutine, in one
// state, with one stack.
//
// Model: the way is walked back from the end, on the coroutine on which the request ended. Its time counts as running
// or ready as it ran or was runnable. Where it was parked, the way goes on with its waker, the coroutine that made it
// ready, if the waker worked for the same trace: the waker's doings meanwhile are why the request waited. The way goes
// as far back as the waker was at work for the trace; the rest of the wait, and waits that others ended, stay with the
// waiting coroutine. Where a runtime does not name a waker (gevent's joinall()), the way goes on with the last child to
// end meanwhile, if any, and where a loop ended the wait, with a child over for 1 ms at most (longer for a call to a
// pool of threads). Where a thread slept, the way goes on with a child on another thread whose end ended the sleep: a
// call, a joined thread. All of these ways are marked as inferred.
//
// Times are those of the timeline, exact; so is how much of an activity ran, was blocked or preempted, and samples say
// when (path_fit.c). Stacks are those of samples: of a running coroutine, its next sample, if it stands for the moment;
// of a wait, the sample taken at its end. Without a sample, the segment has no stack: nothing is guessed. Short waits
// within an activity (gp_activity_record_t) are known as a sum only: each piece of it is divided in its proportion.
//
// Memory: requests are walked trace by trace, of material that is sorted on disk where it is much (sorter.h).
// Threads: one at a time. Signals: not safe.
#pragma once

#include "report/requests.h"

enum gp_path_flag {
    GP_PATH_DIVIDED = 1,     // of an activity with short waits: how much is exact, when is in proportion
    GP_PATH_NOT_STARTED = 2, // before its coroutine was there
    GP_PATH_UNRECORDED = 4,  // no activity says what it did
    GP_PATH_ELSEWHERE = 8,   // its coroutine was at work for another request
    GP_PATH_UNKNOWN = 32,    // had its thread; nothing says whether it ran
    GP_PATH_INFERRED = 16,   // of the last child to end while its spawner waited, perhaps for it
};

typedef struct gp_path_segment {
    uint64_t from_ns, to_ns;
    uint32_t coro;   // number
    uint32_t stack;  // number; GP_INDEX_NONE = no sample tells
    uint32_t blame;  // PARKED: number of the coroutine that ended the wait; GP_INDEX_NONE = not known
    uint32_t thread; // READY, QUEUED, WAITING: index of the thread on which it went on; 0 = not known
    uint32_t state;  // enum gp_sample_kind
    uint32_t flags;  // enum gp_path_flag
} gp_path_segment_t;

typedef struct gp_critical gp_critical_t;

// Walk the critical paths of requests: begin, have `reading` read, walk, free.
//   dataset: loaded with GP_KEEP_WORKS; it and `requests` outlive the walk.
//   chosen: bool[requests->count]; NULL = all.
//   take:   called for each request once, in no order, with its segments back to back from its beginning to its end;
//           they are gone when it returns. Returns 0, or a negative value that ends it and is returned.
// Returns 0 or a negative errno value.
typedef int gp_path_taker_t(void *context, uint32_t request, const gp_path_segment_t *segments, size_t count);
gp_critical_t *gp_critical_begin(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                                 gp_reading_t *reading);
int gp_critical_walk(gp_critical_t *critical, gp_path_taker_t *take, void *context);
void gp_critical_free(gp_critical_t *critical);
// All at once, with a reading of its own.
int gp_critical_paths(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                      gp_path_taker_t *take, void *context);
