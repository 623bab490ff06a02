// SPDX-License-Identifier: MIT
// The record of one coroutine, as the handler and the switch hook see it.
//
// Records live in a type-stable pool: their memory is never returned, so a stale pointer reads a record, if perhaps
// another one's; `id` tells. Life: free -> live (registry, under its lock) -> retired (registry) -> free (collector,
// after it drained every ring, so that no sample refers to it any more).
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/word.h"
#include "greenprof/coro.h"
#include "model/kinds.h"
#include "model/ledger.h"

typedef struct gp_scope gp_scope_t;

enum gp_coro_owner {
    GP_OWNER_UNKNOWN,
    GP_OWNER_PROGRAM, // it made the record, and may have kept a pointer to it
    // Stubs that keep none, and report all of its switches: the word below `park_sp` is `park_pc`, as its switch
    // routine was called.
    GP_OWNER_STUBS,
};

// A bucket of the region table, or a link in it: the number of a record and, in the lowest bit, which of its links goes
// on from there; 0 = the end.
typedef _Atomic uint32_t gp_region_link_t;

// Where a coroutine that switches away will go on.
typedef struct gp_park {
    uintptr_t pc; // return address
    uintptr_t sp; // stack pointer once it has returned there
    uintptr_t fp; // frame pointer then: callee-saved, so what it is now
} gp_park_t;

struct prof_coro {
    // Identity. A record begins a cache line; what every switch reads and writes, up to `off_ns`, is in two.
    // Written by the registry before `id` is released; read by handlers after acquiring `id`.
    _Alignas(64) _Atomic uint64_t id; // never reused in a process; 0 = free or retired
    _Atomic uintptr_t lo, hi;         // the stack region [lo, hi); lo == hi: it has none of its own

    // The ledger, see src/core/signal/ledger_edges.h; written by the thread that runs it or switches to it, read by
    // others.
    _Atomic uint64_t since;          // ticks of its last edge: when it was switched to, away from, or born
    _Atomic uint8_t running;         // which of the two
    _Atomic uint8_t is_reported;     // it was ever reported to have become ready, other than by its birth
    uint8_t kind;                    // enum gp_coro_kind; constant while live
    uint8_t region_kind;             // of an unannounced stack: enum gp_region_kind bits; constant while live
    _Atomic uint32_t epoch;          // sampling epoch for which those and `ready_ticks` hold
    _Atomic uint64_t ready_ticks;    // since when it could run, or that it is over: see ledger_edges.h; 0 = unknown
    _Atomic uint64_t slice_ticks;    // of slices that are over, in all
    _Atomic uint64_t settled;        // ticks up to which `off_ns` has the slice in progress, where that is later
    _Atomic uint64_t unsampled_from; // its present wait is in samples up to here
    _Atomic uint64_t longest_ticks;  // longest slice
    _Atomic uintptr_t park_pc;       // where it will go on, while it does not run; 0 = not known
    // Remains of a retired record; written by the registry.
    union {
        _Atomic uintptr_t park_sp;
        _Atomic uint64_t final_id; // the id it had; there before `id` is 0. No stack holds such an address
    };
    union {
        _Atomic uintptr_t park_fp;
        _Atomic uint64_t final_ticks; // when that was; there after `id` is 0
    };
    _Atomic uint64_t switches; // times it was switched to

    uint64_t birth_ticks;    // constant while live
    _Atomic uint64_t off_ns; // of its slices, what it was not on the CPU; may be a little below zero. See slice.h
    _Atomic uint64_t begun;  // ticks: less the time between sampling epochs, when it was born
    // Ticks in waits whose ready moment was reported (from birth to the first switch counts too); and the runnable part
    // of these.
    _Atomic uint64_t ready_known_ticks, ready_wait_ticks;

    // Birth, constant while live.
    uint64_t parent_id;
    uintptr_t entry;          // address of its entry function, 0 = unknown
    uint32_t hook_mark;       // its runtime hook's, 0 at birth; set by it later, too
    uint16_t spawn_site;      // where it was created, see src/core/coro/spawn.h; 0 = not known
    _Atomic uint8_t owner;    // enum gp_coro_owner
    uint8_t keeps_stack : 1;  // its owner says when [lo, hi) goes; constant while live, but for a thread's
    uint8_t is_loop : 1;      // where it sleeps it waits for events; 0 at birth, set by its hook
    uint8_t shares_stack : 1; // [lo, hi) is others' stack as well, and not in the table of regions; constant while live

    // Registry's lock.
    gp_region_link_t links[2]; // see region.c
    uint32_t next;             // number of the next free or retired one, 0 = none
    uint32_t number;           // constant for ever; see gp_coro_numbered()
};

_Static_assert(sizeof(struct prof_coro) == 192 && offsetof(struct prof_coro, begun) == 128, "three cache lines");

// Fields that few coroutines need, or only while a capture is written, lie beside the records: in arrays of the same
// chunk, zero until a coroutine's part is written first. So they are there as long as the record is, without an
// allocation, for the handler and for stale pointers as well; and zeros take no memory, because the kernel gives a page
// only to what is written. Therefore nothing writes a zero over a zero there (gp_coro_change()).

// Trace, span and scope of a coroutine.
typedef struct gp_coro_context {
    // Innermost request profile that covers it; NULL = none. Changed under the registry's lock.
    _Atomic(gp_scope_t *) scope;
    // Trace id: written by the coroutine itself, under a sequence lock that only its own thread's handler
    // and the collector read. Odd = being written.
    _Atomic uint64_t trace[2];
    _Atomic uint32_t trace_seq;
    _Atomic uint64_t span;   // what is open, see src/core/trace/span_slot.h; inherited, too
    uint64_t birth_trace[2]; // constant while live
} gp_coro_context_t;

// As a member of its scope. Registry's lock, but for `longest_before`.
typedef struct gp_coro_member {
    struct prof_coro *next, *prev; // in the scope
    gp_ledger_t at_entry;          // the ledger on entry into the scope
    uint64_t longest_before;       // its longest slice until then
} gp_coro_member_t;

// The timeline, see activity.h; written by the writer of the ledger, while activities are wanted.
typedef struct gp_coro_timeline {
    _Atomic uint64_t waker; // id of the coroutine that set `ready_ticks`
    _Atomic uint64_t start; // ticks at which its present activity began, 0 = with its birth or the epoch; and then:
    _Atomic uint64_t slice; // slice_ticks
    _Atomic uint64_t off_ns, blocked_ns, gil_ns, lock_ns; // as in the record, and beside it
    _Atomic uint32_t thread;                              // index of the thread
} gp_coro_timeline_t;

// The capture's, see src/core/record/session.c.
typedef struct gp_coro_written {
    _Atomic uint64_t written_id; // id under which its record is in the capture file
    uint64_t ledger_id;          // id for which the fields below hold
    gp_ledger_t reported;        // what of its ledger is in the capture
    uint64_t trace[2];           // under which the rest will be
    bool is_whole;               // an ordinary thread's: `reported` has its off-CPU time, divided (thread_off.h)
    bool is_over;                // and all of it: the thread has ended
} gp_coro_written_t;

enum { GP_CORO_NAME_WORDS = 6 };

// Its name, see src/core/coro/coro_name.h: under a sequence lock; writers hold the registry's. Odd = being written.
typedef struct gp_coro_label {
    _Atomic uint64_t name[GP_CORO_NAME_WORDS];
    _Atomic uint32_t name_seq;
} gp_coro_label_t;

struct prof_coro;
typedef size_t gp_kept_frames_t(const struct prof_coro *coro, uintptr_t *frames, size_t max);

// Fields of some kinds only.
typedef struct gp_coro_rare {
    uintptr_t object; // of its language, for gp_language_t.walk_parked(); 0 = none. Or set before it runs
    _Atomic(struct gp_thread *) thread; // of a thread's own stack: the thread's block
    // Exact mode's, see src/core/exact/exact_stack.h; kept when the record is reused.
    struct gp_exact_stack *exact_stack;
    // Time of samples found to be this coroutine's (GP_CORO_POLLED), or another's than the thread's; modulo 2^64.
    // Collector only.
    _Atomic uint64_t polled_cpu_ns, polled_slice_ns;
    _Atomic uint64_t spawned; // coroutines it created. Registry's lock
    // For a coroutine without a stack: while it waits, the collector asks this whether it is over; NULL = it is not.
    // `subject` is the hook's.
    bool (*_Atomic is_gone)(const struct prof_coro *coro);
    // The same: the frames where it waits, which its hook has kept, innermost first; NULL = they are not known.
    // Threads: any. Signals: safe.
    gp_kept_frames_t *_Atomic kept_frames;
    uintptr_t subject;
    uint32_t
        pool; // of a call handed to a pool of threads: src/core/collect/pools.h; 0 = it is none. Constant while live
} gp_coro_rare_t;

enum {
    GP_CORO_PIECE = 1024,
    GP_CORO_CHUNKS = 1 << 16, // 67 million coroutines at a time: 13 GB of records
};

// A mapping, never returned. No field is written for the chunk itself: it would cost a page.
typedef struct gp_coro_chunk {
    struct prof_coro records[GP_CORO_PIECE];
    gp_coro_context_t contexts[GP_CORO_PIECE];
    gp_coro_member_t members[GP_CORO_PIECE];
    gp_coro_timeline_t timelines[GP_CORO_PIECE];
    gp_coro_written_t told[GP_CORO_PIECE];
    gp_coro_label_t labels[GP_CORO_PIECE];
    gp_coro_rare_t rare[GP_CORO_PIECE];
    _Atomic uint64_t blocked_ns[GP_CORO_PIECE]; // of `off_ns`, its thread slept in the kernel
    _Atomic uint64_t gil_ns[GP_CORO_PIECE];     // and it waited for an interpreter's lock: gil_wait.h
    _Atomic uint64_t lock_ns[GP_CORO_PIECE];    // and for a lock of the program's: the same
} gp_coro_chunk_t;

// By their records' numbers / GP_CORO_PIECE; append-only, none at 0.
extern _Atomic(gp_coro_chunk_t *) gp_coro_chunks[GP_CORO_CHUNKS]; // region.c

// The record with that number, which was read with acquire, or under the registry's lock.
static inline struct prof_coro *gp_coro_numbered(uint32_t number)
{
    gp_coro_chunk_t *chunk = atomic_load_explicit(&gp_coro_chunks[number / GP_CORO_PIECE], memory_order_relaxed);
    return &chunk->records[number % GP_CORO_PIECE];
}

static inline gp_coro_chunk_t *gp_coro_chunk(const struct prof_coro *coro)
{
    return (gp_coro_chunk_t *)(uintptr_t)(coro - coro->number % GP_CORO_PIECE); // the records are its beginning
}

static inline gp_coro_context_t *gp_coro_context(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->contexts[coro->number % GP_CORO_PIECE];
}

static inline gp_coro_member_t *gp_coro_member(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->members[coro->number % GP_CORO_PIECE];
}

static inline gp_coro_timeline_t *gp_coro_timeline(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->timelines[coro->number % GP_CORO_PIECE];
}

static inline gp_coro_written_t *gp_coro_written(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->told[coro->number % GP_CORO_PIECE];
}

static inline gp_coro_label_t *gp_coro_label(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->labels[coro->number % GP_CORO_PIECE];
}

static inline gp_coro_rare_t *gp_coro_rare(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->rare[coro->number % GP_CORO_PIECE];
}

static inline _Atomic uint64_t *gp_coro_blocked_ns(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->blocked_ns[coro->number % GP_CORO_PIECE];
}

static inline _Atomic uint64_t *gp_coro_gil_ns(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->gil_ns[coro->number % GP_CORO_PIECE];
}

static inline _Atomic uint64_t *gp_coro_lock_ns(const struct prof_coro *coro)
{
    return &gp_coro_chunk(coro)->lock_ns[coro->number % GP_CORO_PIECE];
}

// Set a word of these.
static inline void gp_coro_change(_Atomic uint64_t *word, uint64_t value)
{
    if (atomic_load_explicit(word, memory_order_relaxed) != value)
        atomic_store_explicit(word, value, memory_order_relaxed);
}

// Add on-CPU time to a record; slice.c says which thread may call it.
static inline void gp_coro_add(_Atomic uint64_t *counter, uint64_t amount)
{
    gp_word_add(counter, amount); // single writer at a time: no locked instruction needed
}
