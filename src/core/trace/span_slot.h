// SPDX-License-Identifier: MIT
// Where open spans are: slots that are taken and given back by any thread, and told apart by handles.
//
// Threads: any. Signals: safe, but for gp_span_slot_take().
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "coro/coro_ledger.h"
#include "model/ring_record.h"
#include "signal/thread.h"
#include "trace/span_wants.h"

enum {
    GP_SPAN_NAME_MAX = 255,
    GP_SPAN_TEXT_MAX = 1000, // name and fields together
    GP_SPAN_FIELDS_MAX = 16,
    GP_SPAN_KEY_MAX = 64,
    GP_SPAN_SLOT_CHUNK_LOG2 = 8,                            // slots that are mapped at a time
    GP_SPAN_SLOT_INDEX_BITS = GP_SPAN_SLOT_CHUNK_LOG2 + 10, // spans that may be open at a time: 262,144
};

// A handle is a generation, the number of a slot, and a zero bit; with a one, it stands for an unrecorded request, on
// the coroutine with this id.
#define GP_SPAN_UNRECORDED(coro_id) ((uint64_t)(coro_id) << 1 | 1)

static inline bool gp_span_is_unrecorded(uint64_t handle)
{
    return handle & 1;
}

typedef struct gp_span_slot {
    _Atomic uint64_t generation; // odd: the span is open
    _Atomic uint32_t next;       // of the free ones, its number + 1
    gp_span_t span;              // the mark's fields, but for those set at the end: end, times, end_coro_id and flags
    bool sets_trace;
    bool has_words;       // which of the two below
    bool is_client;       // PROF_SPAN_CLIENT
    _Atomic bool is_told; // its id was
    uint16_t field_count;
    _Atomic uint16_t flags, text_len; // of `text`; written with release
    _Atomic uint32_t renames;         // of the span; odd: its texts are being moved
    uint32_t process;                 // gp_span_slot_process(), as it began
    prof_coro_t *coro;
    uint64_t outer_trace[2];
    uint64_t outer;   // what was open on the coroutine before
    uint64_t request; // the handle of the root around it, or its own
    uint64_t begun;   // ticks: when it was called
    union {           // of the coroutine: where its time had gone by `begun`, or what tells
        gp_ledger_t times;
        gp_ledger_words_t words; // it ran then, and was settled
    };
    const gp_request_watch_t *watch;
    void *watched; // its token; NULL = none
    char text[GP_SPAN_TEXT_MAX];
} gp_span_slot_t;

static inline uint64_t gp_span_handle(uint32_t number, uint64_t generation)
{
    return generation << (GP_SPAN_SLOT_INDEX_BITS + 1) | (uint64_t)number << 1;
}

static inline uint32_t gp_span_handle_number(uint64_t handle)
{
    return (uint32_t)(handle >> 1) & ((1u << GP_SPAN_SLOT_INDEX_BITS) - 1);
}

static inline uint64_t gp_span_handle_generation(uint64_t handle)
{
    return handle >> (GP_SPAN_SLOT_INDEX_BITS + 1);
}

static inline bool gp_span_is_implicit(const gp_span_slot_t *slot)
{
    return atomic_load_explicit(&slot->flags, memory_order_relaxed) & GP_SPAN_IMPLICIT;
}

static inline void gp_span_count(enum gp_counter counter)
{
    if (gp_thread_self != NULL)
        gp_thread_count(gp_thread_self, counter);
}

// By their numbers / (1 << GP_SPAN_SLOT_CHUNK_LOG2); append-only, NULL = not mapped.
extern _Atomic(gp_span_slot_t *) gp_span_slot_chunks[1 << (GP_SPAN_SLOT_INDEX_BITS - GP_SPAN_SLOT_CHUNK_LOG2)]
    __attribute__((visibility("hidden")));

// A slot that is mapped.
static inline gp_span_slot_t *gp_span_slot_at(uint32_t number)
{
    gp_span_slot_t *chunk =
        atomic_load_explicit(&gp_span_slot_chunks[number >> GP_SPAN_SLOT_CHUNK_LOG2], memory_order_acquire);
    return &chunk[number & ((1u << GP_SPAN_SLOT_CHUNK_LOG2) - 1)];
}

// Slots of no thread: take one, and give it back. NULL: memory is short, or there are as many as there may be, and it
// is counted.
gp_span_slot_t *gp_span_slot_take_shared(uint32_t *number);
void gp_span_slot_share(uint32_t number);

// Take a free slot, which is of no span until its generation is odd: mostly the one given back last by this thread, and
// reserved for it. Spans are not for signal handlers. NULL: as above.
static inline gp_span_slot_t *gp_span_slot_take(uint32_t *number)
{
    gp_thread_t *thread = gp_thread_self;
    if (thread == NULL || thread->spare_span == 0)
        return gp_span_slot_take_shared(number);
    *number = thread->spare_span - 1;
    thread->spare_span = 0;
    return gp_span_slot_at(*number);
}

// The slot of a span that is open; NULL: it is over, or never was.
static inline gp_span_slot_t *gp_span_slot_open(uint64_t handle)
{
    uint32_t number = gp_span_handle_number(handle);
    // Acquire: partner of the release where it was mapped.
    gp_span_slot_t *chunk =
        atomic_load_explicit(&gp_span_slot_chunks[number >> GP_SPAN_SLOT_CHUNK_LOG2], memory_order_acquire);
    if (chunk == NULL || gp_span_is_unrecorded(handle))
        return NULL;
    gp_span_slot_t *slot = &chunk[number & ((1u << GP_SPAN_SLOT_CHUNK_LOG2) - 1)];
    // Acquire: partner of the release where it began.
    uint64_t generation = atomic_load_explicit(&slot->generation, memory_order_acquire);
    return generation == gp_span_handle_generation(handle) && (generation & 1) ? slot : NULL;
}

// Claim the end of a span: one caller gets it.
static inline bool gp_span_slot_claim(gp_span_slot_t *slot, uint64_t handle)
{
    uint64_t generation = gp_span_handle_generation(handle);
    return atomic_compare_exchange_strong_explicit(&slot->generation, &generation, generation + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

// The slot of a span that was taken is free.
static inline void gp_span_slot_give_back(uint64_t handle)
{
    gp_thread_t *thread = gp_thread_self;
    uint32_t number = gp_span_handle_number(handle);
    if (thread != NULL && thread->spare_span == 0)
        thread->spare_span = number + 1;
    else
        gp_span_slot_share(number);
}

// The number of slots, and a slot; NULL: it is not mapped.
uint32_t gp_span_slot_count(void);
const gp_span_slot_t *gp_span_slot_nth(uint32_t number);

// Differs between a process and the children that it forks.
uint32_t gp_span_slot_process(void);
void gp_span_slots_after_fork(void);
