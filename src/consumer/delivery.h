// SPDX-License-Identifier: MIT
// An open consumer: it stands between the collector's thread, which must not wait, and a backend, which may.
//
// Model: gp_delivery_give() puts a span into the queue, or counts it. The consumer's thread offers the queue to the
// backend; while that does not take any it waits, 50 ms at first and up to 5 s, and moves the queue to the spool.
// Spooled spans go first when the backend is back.
//
// Threads: gp_delivery_give() on the collector's, gp_delivery_run() on the consumer's own; the others on any.
// Signals: not safe.
#pragma once

#include "consumer/hold.h"
#include "consumer/queue.h"
#include "consumer/spool.h"
#include "consumer/url.h"
#include "model/identity.h"

enum gp_delivery_phase { GP_DELIVERY_OPEN, GP_DELIVERY_CLOSING, GP_DELIVERY_OVER };

typedef struct gp_delivery {
    char url[GP_URL_MAX], spool_directory[GP_URL_MAX];
    const prof_consumer_t *backend;
    void *state; // the backend's; NULL: to be opened by the consumer's thread
    gp_identity_t identity;
    gp_queue_t queue;
    gp_hold_t hold;
    uint64_t spool_bytes;
    gp_spool_t spool, adopted;
    uint8_t *buffer;                         // bytes read of a spool
    uint64_t retry_ns, backoff_ns, adopt_ns; // CLOCK_MONOTONIC; how long the last wait was
    uint64_t deadline_ns;                    // once it is closing
    bool is_spool_stuck;                     // took nothing at the last attempt
    _Atomic uint32_t phase;                  // enum gp_delivery_phase
    bool has_thread;
    bool (*may_stay)(void); // asked by its thread, which otherwise ends for a moment; NULL = it may
    _Atomic int32_t thread; // its number, while it runs; 0: none
    struct {
        _Atomic uint64_t given, sent, refused, lost_queue, lost_end, fast, spooled, recovered, failures;
        _Atomic int32_t last_error;
    } counts;
} gp_delivery_t;

// Make one for a URL; nothing runs yet.
//   spool: directory, where the URL names none; NULL = none.
// Returns 0; -EINVAL, -ENOMEM, or what the backend's open() says.
int gp_delivery_begin(gp_delivery_t *delivery, const char *url, const prof_consumer_t *backend, const char *spool,
                      const gp_identity_t *identity);

// Hand a span over. Never waits.
void gp_delivery_give(gp_delivery_t *delivery, const gp_packed_span_t *packed);

// The thread. delivery: gp_delivery_t *
void *gp_delivery_run(void *delivery);

// Called by such a thread as it begins: the program's threads go first. Returns its number.
int32_t gp_delivery_stand_back(void);

// Let `thread`, for which the caller waits, go first no more. Without the right to raise a priority (CAP_SYS_NICE or
// RLIMIT_NICE) its niceness stays. Signals: safe, errno is kept.
//   thread: its number, and it runs; 0 = none.
void gp_delivery_come_forward(int32_t thread);

// Let the thread come to its end: what is queued is sent or spooled before `deadline_ns` (CLOCK_MONOTONIC).
void gp_delivery_close(gp_delivery_t *delivery, uint64_t deadline_ns);

// Wait for that, or until everything given so far was dealt with. Returns 0 or -ETIMEDOUT.
int gp_delivery_wait_over(gp_delivery_t *delivery, uint64_t deadline_ns);
int gp_delivery_wait_idle(gp_delivery_t *delivery, uint64_t deadline_ns);

// Free a consumer's memory; its thread is over, or never was.
void gp_delivery_end(gp_delivery_t *delivery);

// In a forked child: what is in it is the parent's; it begins anew, without a thread.
void gp_delivery_after_fork(gp_delivery_t *delivery, int32_t pid);

void gp_delivery_status(const gp_delivery_t *delivery, prof_consumer_status_t *sum);
