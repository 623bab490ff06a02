// SPDX-License-Identifier: MIT
// Jobs that threads of the program do ahead of a caller, which takes them in the order of need.
//
// Model: a job is given, then taken. Taking waits until the job is done; the taker does a job not begun yet, so that
// there need not be any thread. There are threads only where a program has said how to start them: in a profiled
// process nothing does.
//
// Order of calls: use -> open -> (give -> take)... -> close. A job that was given is taken before close.
// Threads: helpers belong to one thread at a time, but jobs may give and take others; a job's work runs in any thread.
// Signals: not safe.
#pragma once

#include <pthread.h>
#include <stdbool.h>

enum { GP_HELPERS_MAX = 3 };

// Start a thread, as pthread_create() does. Returns 0 or a positive errno value.
typedef int gp_helper_start_t(pthread_t *thread, void *(*run)(void *), void *argument);

// Allow threads in this process, to all helpers opened from then on.
//   count: for each of them; at most GP_HELPERS_MAX are started. 0 = none.
void gp_helpers_use(unsigned count, gp_helper_start_t *start);

bool gp_helpers_are_allowed(void);

typedef struct gp_job { // the first member of what the work needs; zero-initialized but for `work`
    void (*work)(struct gp_job *job);
    struct gp_job *next; // in the queue
    bool takes_others;   // its work gives and takes others
    enum { GP_JOB_IDLE, GP_JOB_GIVEN, GP_JOB_BEGUN, GP_JOB_DONE } state;
} gp_job_t;

typedef struct gp_helpers gp_helpers_t;

// Start the threads. Returns NULL where none are allowed, or none can be had: all below take that, too.
gp_helpers_t *gp_helpers_open(void);

// Have a job done. The job, and all it points to, belongs to the helpers until it is taken.
void gp_helpers_give(gp_helpers_t *helpers, gp_job_t *job);

// Return when the job is done; one that was not given, or taken before, is.
void gp_helpers_take(gp_helpers_t *helpers, gp_job_t *job);

// The same; as long as another thread is at it, do jobs not begun yet, also newly given ones.
void gp_helpers_take_helping(gp_helpers_t *helpers, gp_job_t *job);

// The same within a job with jobs of its own: others of this kind are left alone, as all would be on one stack.
void gp_helpers_take_within(gp_helpers_t *helpers, gp_job_t *job);

// The same as take for a job whose result is not needed any more: it is not done if it has not begun.
void gp_helpers_withdraw(gp_helpers_t *helpers, gp_job_t *job);

// End the threads, and free.
void gp_helpers_close(gp_helpers_t *helpers);
