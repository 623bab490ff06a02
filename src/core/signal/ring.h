// SPDX-License-Identifier: MIT
// Ring of records from one thread to the collector.
//
// Producers: the thread itself and its SIGPROF handler, which interrupts it: a record is reserved with one
// compare-and-swap, filled, then committed. Consumer: the collector. It reads a record only when its header is
// committed, zeroes what it has read, then moves the tail; a reserved record that is not committed yet holds it up.
// Memory outside [tail, head) is always zero.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum gp_ring_type {
    GP_RING_PAD = 1,
    GP_RING_SAMPLE = 2,     // gp_sample_t, on-CPU
    GP_RING_TRACE_MARK = 3, // gp_trace_mark_t
    GP_RING_WAIT = 4,       // gp_sample_t, of a wait that is over
    GP_RING_HOG = 5,        // gp_hog_mark_t
    GP_RING_DELAY = 6,      // gp_delay_mark_t
    GP_RING_ACTIVITY = 7,   // gp_activity_mark_t
    GP_RING_SPAN = 8,       // gp_span_mark_t
};

typedef struct gp_ring_header {
    _Atomic uint32_t committed; // enum gp_ring_type, 0 = not yet
    uint32_t bytes;             // with this header, a multiple of 8
} gp_ring_header_t;

typedef struct gp_ring {
    unsigned char *data;
    uint64_t capacity; // bytes, a power of two
    _Atomic uint64_t head, tail;
    uint64_t warm; // bytes from the start that were touched ahead; the collector's
} gp_ring_t;

// Reserve `bytes` (a multiple of 8, with header). Returns NULL when the ring is full. Signals: safe.
static inline void *gp_ring_reserve(gp_ring_t *ring, uint32_t bytes)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), need, room;
    do {
        // Acquire: partner of the release in gp_ring_consume(): the zeroes are there before the space is reused.
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        room = ring->capacity - (head & (ring->capacity - 1));
        need = bytes <= room ? bytes : room + bytes;
        if (head + need - tail > ring->capacity)
            return NULL;
        // Only this thread's own handler competes: it runs to completion in between.
    } while (!atomic_compare_exchange_weak_explicit(&ring->head, &head, head + need, memory_order_relaxed,
                                                    memory_order_relaxed));
    gp_ring_header_t *header = (gp_ring_header_t *)(void *)(ring->data + (head & (ring->capacity - 1)));
    if (bytes > room) {
        header->bytes = (uint32_t)room;
        atomic_store_explicit(&header->committed, GP_RING_PAD, memory_order_release);
        header = (gp_ring_header_t *)(void *)ring->data;
    }
    header->bytes = bytes;
    return header;
}

// Signals: safe.
static inline void gp_ring_commit(void *record, enum gp_ring_type type)
{
    gp_ring_header_t *header = record;
    // Release: partner of the acquire in gp_ring_peek().
    atomic_store_explicit(&header->committed, (uint32_t)type, memory_order_release);
}

// Oldest committed record, or NULL. Collector only.
static inline gp_ring_header_t *gp_ring_peek(gp_ring_t *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    gp_ring_header_t *header = (gp_ring_header_t *)(void *)(ring->data + (tail & (ring->capacity - 1)));
    // Acquire: partner of the release in gp_ring_commit().
    return atomic_load_explicit(&header->committed, memory_order_acquire) ? header : NULL;
}

// Give a record that gp_ring_peek() returned back. Collector only.
static inline void gp_ring_consume(gp_ring_t *ring, gp_ring_header_t *header)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint32_t bytes = header->bytes;
    memset((void *)header, 0, bytes);
    // Release: partner of the acquire in gp_ring_reserve().
    atomic_store_explicit(&ring->tail, tail + bytes, memory_order_release);
}

// How much is waiting, bytes. Any thread.
static inline uint64_t gp_ring_fill(gp_ring_t *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed) -
           atomic_load_explicit(&ring->tail, memory_order_relaxed);
}
