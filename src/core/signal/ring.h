// SPDX-License-Identifier: MIT
// Ring of records from one thread to the collector.
//
// Producers: the thread itself and its SIGPROF handler, which interrupts it: a record is reserved with one
// compare-and-swap, filled, then committed. Consumer: the collector. The collector reads a record once its header is
// committed, zeroes it, then moves the tail; a reserved record holds it up until it is committed. Memory outside [tail,
// head) is always zero.
//
// The memory of a ring may be a file's (src/core/record/ring_file.h), for when the process is killed. Such a ring
// keeps what was read until it is released: [tail, read) is in no capture yet, or may not be.
//
// A ring turns from its own memory to the file's, and back, while its thread goes on: from a position on where its
// memory begins, so far ahead that a producer gets there only when the tail has moved (gp_ring_turn()). So what sees
// that tail sees where the memory is, too. The collector fills what is in between with padding, as a producer of its
// own (src/core/coro/thread_rings.h).
//
// An empty ring goes back to where its memory begins (gp_ring_rewind()), so that no more of it comes into use than what
// waits at a time.
#pragma once

#include <string.h>

#include "base/arch.h"
#include "model/ring_record.h"

typedef struct gp_ring {
    unsigned char *data;           // its own
    _Atomic(unsigned char *) file; // a file's, a gp_ring_owner_t in front of it; NULL = never
    uint64_t capacity;             // bytes, a power of two
    _Atomic uint64_t head, tail;
    _Atomic uint64_t read;                // up to where the collector has read: the tail, unless it keeps what was read
    _Atomic uint64_t file_from, own_from; // positions of the latest turns: the larger one holds from there on
    uint64_t warm;                        // bytes from the start that were touched ahead; the collector's
    bool keeps;                           // the collector's; only where it is a file's
} gp_ring_t;

enum { GP_RING_REWIND_BYTES = 2048 }; // so much is written before a ring goes back to its memory's begin
enum { GP_RING_LINE = 64 };           // of a cache
enum { GP_RING_OWNER_BYTES = 4096 };  // whole pages: the ring's data is as other rings' is

static inline gp_ring_owner_t *gp_ring_owner_of(unsigned char *file)
{
    return (gp_ring_owner_t *)(void *)(file - GP_RING_OWNER_BYTES);
}

static inline gp_ring_owner_t *gp_ring_owner(const gp_ring_t *ring)
{
    return gp_ring_owner_of(atomic_load_explicit(&ring->file, memory_order_relaxed));
}

// Is position `at` in the file? The latest turn may be ahead of it: then it is as before. Signals: safe.
static inline bool gp_ring_is_file(const gp_ring_t *ring, uint64_t at)
{
    // Acquire: partner of the release in gp_ring_turn(): a file is nothing without where it begins.
    bool is_there = atomic_load_explicit(&ring->file, memory_order_acquire) != NULL;
    // Relaxed: a reader behind a turn has read a tail that was moved after it.
    uint64_t file_from = atomic_load_explicit(&ring->file_from, memory_order_relaxed);
    uint64_t own_from = atomic_load_explicit(&ring->own_from, memory_order_relaxed);
    return is_there && at >= file_from && (own_from <= file_from || at < own_from);
}

// Signals: safe.
static inline gp_ring_header_t *gp_ring_at(const gp_ring_t *ring, uint64_t at)
{
    unsigned char *data =
        gp_ring_is_file(ring, at) ? atomic_load_explicit(&ring->file, memory_order_relaxed) : ring->data;
    return (gp_ring_header_t *)(void *)(data + (at & (ring->capacity - 1)));
}

// Reserve `bytes` (a multiple of 8, with header). Returns NULL when the ring is full. Signals: safe.
static inline void *gp_ring_reserve(gp_ring_t *ring, uint32_t bytes)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), need, room;
    do {
        // Acquire: partner of the release in gp_ring_release(): the zeroes are there before the space is reused, and
        // so is a turn.
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        room = ring->capacity - (head & (ring->capacity - 1));
        need = bytes <= room ? bytes : room + bytes;
        if (head + need - tail > ring->capacity)
            return NULL;
        // This thread's own handler competes, which runs to completion in between; and the collector, in a turn. In one
        // order with what gp_thread_commit() reads, and with gp_ring_has_begun().
    } while (!atomic_compare_exchange_weak_explicit(&ring->head, &head, head + need, memory_order_seq_cst,
                                                    memory_order_relaxed));
    gp_ring_header_t *header = gp_ring_at(ring, head);
    if (bytes > room) {
        header->bytes = (uint32_t)room;
        atomic_store_explicit(&header->committed, GP_RING_PAD, memory_order_release);
        header = gp_ring_at(ring, head + room);
    }
    header->bytes = bytes;
    return header;
}

// Prefetch the memory of the next record, of about `bytes`, into this processor's cache: the collector, which has read
// and cleared the old content, may run on another processor, and an atomic exchange waits ~60 ns for each line from
// there. Nothing waits for this, and it may be for nothing. Signals: safe. Cost: ~2 ns.
static inline void gp_ring_expect(const gp_ring_t *ring, uint32_t bytes)
{
    unsigned char *at = (unsigned char *)gp_ring_at(ring, atomic_load_explicit(&ring->head, memory_order_relaxed));
    for (uint32_t i = 0; i < bytes + GP_RING_LINE; i += GP_RING_LINE)
        gp_arch_expect_write(at + i);
}

// Signals: safe.
static inline void gp_ring_commit(void *record, enum gp_ring_type type)
{
    gp_ring_header_t *header = record;
    // Release: partner of the acquire in gp_ring_peek().
    atomic_store_explicit(&header->committed, (uint32_t)type, memory_order_release);
}

// A child of the process that came about without its fork handlers has the same file: what it writes is no record.
static inline bool gp_ring_is_sound(const gp_ring_t *ring, uint64_t at, uint32_t bytes)
{
    return bytes >= sizeof(gp_ring_header_t) && bytes % 8 == 0 && bytes <= ring->capacity - (at & (ring->capacity - 1));
}

// Oldest committed record that was not read, or NULL. Collector only.
static inline gp_ring_header_t *gp_ring_peek(gp_ring_t *ring)
{
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    gp_ring_header_t *header = gp_ring_at(ring, read);
    if (ring->keeps && read == atomic_load_explicit(&ring->head, memory_order_relaxed))
        return NULL; // the oldest record kept is there, perhaps
    // Acquire: partner of the release in gp_ring_commit().
    if (!atomic_load_explicit(&header->committed, memory_order_acquire))
        return NULL;
    return !gp_ring_is_file(ring, read) || gp_ring_is_sound(ring, read, header->bytes) ? header : NULL;
}

// Give the space of what was read up to `upto` back. Collector only.
static inline void gp_ring_release(gp_ring_t *ring, uint64_t upto)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail < upto && gp_ring_is_file(ring, tail))
        atomic_store_explicit(&gp_ring_owner(ring)->tail, upto, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); // what finds the file after a kill sees stores in their order
    while (tail < upto) {
        uint64_t at = tail & (ring->capacity - 1), room = ring->capacity - at;
        uint64_t bytes = upto - tail < room ? upto - tail : room;
        memset(gp_ring_at(ring, tail), 0, bytes);
        tail += bytes;
    }
    // Release: partner of the acquire in gp_ring_reserve().
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

// Take note that a record which gp_ring_peek() returned was read. Collector only.
static inline void gp_ring_consume(gp_ring_t *ring, gp_ring_header_t *header)
{
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed) + header->bytes;
    atomic_store_explicit(&ring->read, read, memory_order_relaxed);
    if (!ring->keeps || read <= atomic_load_explicit(&ring->file_from, memory_order_relaxed))
        gp_ring_release(ring, read);
}

// How much is waiting, or kept, bytes. Any thread.
static inline uint64_t gp_ring_fill(gp_ring_t *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed) -
           atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

// How much was not read yet, bytes. Any thread.
static inline uint64_t gp_ring_unread(gp_ring_t *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed) -
           atomic_load_explicit(&ring->read, memory_order_relaxed);
}

// Is there a record that was not read yet, be it complete or only reserved? Collector only; in one order with
// gp_ring_reserve().
static inline bool gp_ring_has_begun(gp_ring_t *ring)
{
    return atomic_load(&ring->head) != atomic_load_explicit(&ring->read, memory_order_relaxed);
}

// Is there so much in it that the collector is to be woken? Signals: safe.
static inline bool gp_ring_is_pressed(gp_ring_t *ring)
{
    return gp_ring_unread(ring) > ring->capacity / 2 || gp_ring_fill(ring) > ring->capacity / 4 * 3;
}

// Old records, kept so far, give way to new ones. Collector only.
static inline void gp_ring_relieve(gp_ring_t *ring)
{
    gp_ring_release(ring, atomic_load_explicit(&ring->read, memory_order_relaxed));
}

// Turn to the file's memory (which is zero, all of it), or to its own, from where that memory begins. Returns the
// position. Collector only, and not before the turn before is over.
static inline uint64_t gp_ring_turn(gp_ring_t *ring, unsigned char *file)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t from = (tail + 2 * ring->capacity - 1) & ~(ring->capacity - 1); // no producer is so far yet
    ring->keeps = file != NULL;
    if (file != NULL)
        gp_ring_owner_of(file)->tail = from; // which may take a while: it is a file's
    atomic_store_explicit(file != NULL ? &ring->file_from : &ring->own_from, from, memory_order_relaxed);
    // Release: partner of the acquire in gp_ring_is_file(). A reader that finds no file is not behind the turn.
    if (file != NULL)
        atomic_store_explicit(&ring->file, file, memory_order_release);
    return from;
}

// From where on the present memory is used, or will be once the turn is over.
static inline uint64_t gp_ring_start(const gp_ring_t *ring)
{
    uint64_t file_from = atomic_load_explicit(&ring->file_from, memory_order_relaxed);
    uint64_t own_from = atomic_load_explicit(&ring->own_from, memory_order_relaxed);
    return file_from > own_from ? file_from : own_from;
}

// Is nothing in the memory of before any more? Collector only.
static inline bool gp_ring_has_turned(const gp_ring_t *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_relaxed) >= gp_ring_start(ring);
}

// Is it worth while to rewind it? Not where what was read is kept, or a turn is under way. Collector only.
static inline bool gp_ring_may_rewind(const gp_ring_t *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    return (tail & (ring->capacity - 1)) >= GP_RING_REWIND_BYTES && gp_ring_has_turned(ring) &&
           tail == atomic_load_explicit(&ring->head, memory_order_relaxed) && !gp_ring_is_file(ring, tail);
}

// Go on where the memory begins, unless there is a record again. Memory passed over is zero, and stays so. Collector
// only, and nothing else may give the ring's memory back meanwhile.
static inline void gp_ring_rewind(gp_ring_t *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), head = tail;
    uint64_t next = (tail | (ring->capacity - 1)) + 1;
    // The thread, and its handler, compete. Until the tail follows they have as much room as there was written.
    if (!gp_ring_may_rewind(ring) ||
        !atomic_compare_exchange_strong_explicit(&ring->head, &head, next, memory_order_relaxed, memory_order_relaxed))
        return;
    atomic_store_explicit(&ring->read, next, memory_order_relaxed);
    // Release: partner of the acquire in gp_ring_reserve().
    atomic_store_explicit(&ring->tail, next, memory_order_release);
}

// Bring the head nearer to the turn, by padding, none of which is behind it: half of the ring at most, where there is
// room for nearly as much again. Records there are to be read then. Collector only.
static inline void gp_ring_hasten(gp_ring_t *ring)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), start = gp_ring_start(ring), bytes;
    do {
        if (head >= start || gp_ring_fill(ring) > ring->capacity / 8)
            return;
        uint64_t room = ring->capacity - (head & (ring->capacity - 1)), most = ring->capacity / 2;
        bytes = room < most ? room : most;
        // The thread, and its handler, compete.
    } while (!atomic_compare_exchange_weak_explicit(&ring->head, &head, head + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    gp_ring_header_t *header = gp_ring_at(ring, head);
    header->bytes = (uint32_t)bytes;
    gp_ring_commit(header, GP_RING_PAD);
}
