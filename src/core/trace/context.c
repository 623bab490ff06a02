// SPDX-License-Identifier: MIT
// The trace id that a coroutine carries.
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "greenprof/trace.h"
#include "signal/sample.h"
#include "signal/slice.h"

// Tell the collector, so that the ledger of the old trace ends here.
static void mark(prof_coro_t *coro, const uint64_t trace[2])
{
    gp_thread_t *thread = gp_thread_self;
    gp_slice_settle_now(thread);
    gp_trace_mark_t *record = gp_ring_reserve(&thread->ring, sizeof(*record));
    if (record == NULL) {
        gp_thread_count(thread, GP_COUNTER_LOST_MARKS);
        return;
    }
    record->coro = coro;
    record->coro_id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    gp_ledger_read(coro, gp_ticks(), &record->ledger);
    memcpy(record->trace, trace, sizeof(record->trace));
    gp_thread_commit(thread, record, GP_RING_TRACE_MARK);
}

// Source: the sequence lock of coro_record.h; the readers are this thread's own handler and coroutines being born here.
static void change(prof_coro_t *coro, const uint64_t trace[2])
{
    uint32_t sequence = atomic_load_explicit(&coro->trace_seq, memory_order_relaxed);
    atomic_store_explicit(&coro->trace_seq, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&coro->trace[0], trace[0], memory_order_relaxed);
    atomic_store_explicit(&coro->trace[1], trace[1], memory_order_relaxed);
    atomic_store_explicit(&coro->trace_seq, sequence + 2, memory_order_release);
}

static int set(const uint64_t trace[2], uintptr_t sp)
{
    prof_coro_t *coro = gp_coro_of_caller(sp);
    if (coro == NULL)
        return -ENOMEM;
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        mark(coro, trace);
    change(coro, trace);
    return 0;
}

int prof_trace_set(const prof_trace_id_t *id)
{
    uint64_t trace[2];
    if (id == NULL)
        return -EINVAL;
    memcpy(trace, id->bytes, sizeof(trace));
    if (trace[0] == 0 && trace[1] == 0)
        return -EINVAL;
    return set(trace, (uintptr_t)__builtin_frame_address(0));
}

void prof_trace_clear(void)
{
    static const uint64_t none[2];
    set(none, (uintptr_t)__builtin_frame_address(0));
}

int prof_trace_get(prof_trace_id_t *id)
{
    if (id == NULL)
        return -EINVAL;
    uint64_t trace[2] = {0, 0};
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    for (int i = 0; coro != NULL && i < 2; i++)
        trace[i] = atomic_load_explicit(&coro->trace[i], memory_order_relaxed);
    memcpy(id->bytes, trace, sizeof(trace));
    return trace[0] != 0 || trace[1] != 0 ? 0 : -ENOENT;
}
