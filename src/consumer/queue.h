// SPDX-License-Identifier: MIT
// A bounded queue of packed spans between the collector's thread, which must not wait, and a consumer's thread.
//
// Model: a ring of bytes, one thread puts and one takes. `tail` is raised when a span is whole, `head` when it was
// dealt with: until then a span stays where it is. A span without room is not put. Signals: not safe, though nothing
// here takes a lock.
#pragma once

#include <stdatomic.h>

#include "consumer/packed_span.h"

typedef struct gp_queue {
    uint8_t *ring;
    size_t size;            // power of two
    _Atomic uint64_t head;  // bytes taken; written by the one that takes
    _Atomic uint64_t tail;  // bytes put; written by the one that puts
    _Atomic uint64_t spans; // in it
    _Atomic uint32_t bell;  // raised with every span, to sleep on
    _Atomic bool is_asleep; // the one that takes
} gp_queue_t;

// Make an empty one of at least `size` bytes. Returns 0 or -ENOMEM.
int gp_queue_begin(gp_queue_t *queue, size_t size);
void gp_queue_end(gp_queue_t *queue);

// Forget what is in it; in a forked child, where nothing else uses it.
void gp_queue_forget(gp_queue_t *queue);

// Put a span and wake the other side up. Returns false where there is no room.
bool gp_queue_put(gp_queue_t *queue, const gp_packed_span_t *packed);

// The next span at or behind *at, which begins as gp_queue_first(); NULL: there is none yet. *at is moved behind it.
const gp_packed_span_t *gp_queue_next(const gp_queue_t *queue, uint64_t *at);
uint64_t gp_queue_first(const gp_queue_t *queue);

// `spans` spans, those before `at`, were dealt with.
void gp_queue_take(gp_queue_t *queue, uint64_t at, size_t spans);

// Sleep until gp_queue_ring(), or `limit_ns` have passed; with until_filled, also until something is in it. May return
// early.
//   bell: of gp_queue_bell(), before the caller looked whether it is to sleep.
uint32_t gp_queue_bell(const gp_queue_t *queue);
void gp_queue_wait(gp_queue_t *queue, uint32_t bell, uint64_t limit_ns, bool until_filled);
void gp_queue_ring(gp_queue_t *queue);
