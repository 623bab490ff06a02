// The record of one coroutine, as the handler and the switch hook see it.
//
// Records live in a type-stable pool: their memory is never returned, so a stale pointer reads a record, if perhaps
// another one's; `id` tells. Life: free -> live (registry, under its lock) -> retired (registry) -> free (collector,
// after it drained every ring, so that no sample refers to it any more).
#ifndef GP_SIGNAL_CORO_RECORD_H
#define GP_SIGNAL_CORO_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "greenprof/coro.h"

typedef struct gp_scope gp_scope_t;

// A link of a record in one bucket of the region table.
typedef struct gp_region_link {
    struct prof_coro *coro;
    _Atomic(struct gp_region_link *) next;
    _Atomic(struct gp_region_link *) *bucket; // where it is linked, NULL = nowhere; writers only
} gp_region_link_t;

// Where a coroutine that switches away will go on.
typedef struct gp_park {
    uintptr_t pc; // return address
    uintptr_t sp; // stack pointer once it has returned there
    uintptr_t fp; // frame pointer then: callee-saved, so what it is now
} gp_park_t;

struct prof_coro {
    // Identity. Written by the registry before `id` is released; read by handlers after acquiring `id`.
    _Atomic uint64_t id; // never reused in a process; 0 = free or retired
    _Atomic uintptr_t lo, hi; // the stack region [lo, hi); lo == hi: it has none of its own

    // Trace id: written by the coroutine itself, under a sequence lock that only its own thread's handler and the
    // collector read. Odd = being written.
    _Atomic uint32_t trace_seq;
    uint32_t kind; // enum gp_coro_kind
    _Atomic uint64_t trace[2];

    // Innermost request profile that covers it; NULL = none. Changed under the registry's lock.
    _Atomic(gp_scope_t *) scope;

    // Exact accounting, written by the thread that runs it.
    _Atomic uint64_t cpu_ns;
    _Atomic uint64_t switches;
    _Atomic uint64_t ready_ticks; // last prof_coro_ready(), 0 = never

    // Birth, constant while live.
    uint64_t parent_id;
    uintptr_t entry; // address of its entry function, 0 = unknown
    uint64_t birth_ticks;
    uint64_t birth_trace[2];
    char name[48];

    // Registry only.
    gp_region_link_t links[2];
    struct prof_coro *next;

    // Collector only: what of the accounting it has reported, and under which trace.
    uint64_t written_id; // id under which its record is in the capture file
    uint64_t ledger_id;  // id for which the fields below hold
    uint64_t reported_ns;
    uint64_t reported_switches;
    uint64_t ledger_trace[2];
    uint64_t final_id; // the id it had when it was retired
};

// Add on-CPU time to a record; see slice.c for who may call it.
static inline void gp_coro_add(_Atomic uint64_t *counter, uint64_t amount)
{
    // Single writer at a time: no locked instruction needed.
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

#endif
