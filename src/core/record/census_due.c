// SPDX-License-Identifier: MIT
#include "record/census_due.h"

#include "capture/format.h"
#include "collect/ready_threads.h"
#include "record/session_records.h"
#include "record/session_report.h"
#include "signal/ledger_edges.h"

enum { SHARE = 100, PART = 8, FREE_BYTES = 1 << 20 };

#define LEAST_NS 5000000000ull // between two
#define HELD_NS  1000000000ull // a thread, by one coroutine

static uint64_t next_ns, next_held_ns; // CLOCK_MONOTONIC
static uint64_t looked;                // ticks: the look before
static uint64_t held_bytes;            // of censuses of held threads
static bool is_held;

// Doublings since HELD_NS; -1 = it has not lasted as long.
static int census_due_doublings(uint64_t since, uint64_t now)
{
    uint64_t times = now > since ? gp_ticks_to_ns(now - since) / HELD_NS : 0;
    return times > 0 ? 63 - __builtin_clzll(times) : -1;
}

static bool census_due_holds_longer(gp_thread_t *thread, uint64_t now)
{
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_acquire);
    if (coro == NULL || coro == thread->root || !gp_ledger_edge_is_current(coro))
        return false;
    uint64_t since = gp_ledger_edge_load(&coro->since);
    return census_due_doublings(since, now) > census_due_doublings(since, looked);
}

static void census_due_look_at_threads(void)
{
    uint64_t now = gp_ticks();
    gp_thread_t *thread;
    gp_ready_threads_take();
    for (uint32_t slot = 0; (thread = gp_thread_set_next(&gp_ready_threads_lookers, &slot)) != NULL;)
        is_held = is_held || census_due_holds_longer(thread, now);
    looked = now;
}

bool gp_census_is_due(uint64_t now_ns)
{
    census_due_look_at_threads();
    if (now_ns >= next_ns) {
        is_held = false;
        return true;
    }
    return is_held && now_ns >= next_held_ns && held_bytes < gp_session_handed_over_bytes() / PART + FREE_BYTES;
}

void gp_census_taken(uint64_t begun_ns, uint64_t so_far_ns, size_t records)
{
    uint64_t now_ns = gp_clock_ns(CLOCK_MONOTONIC), pause_ns = so_far_ns / PART;
    uint64_t least_ns = (now_ns - begun_ns) * SHARE;
    pause_ns = pause_ns > LEAST_NS ? pause_ns : LEAST_NS;
    if (is_held)
        held_bytes += records * sizeof(gp_census_record_t);
    is_held = false;
    next_held_ns = begun_ns + least_ns;
    next_ns = begun_ns + (least_ns > pause_ns ? least_ns : pause_ns);
}

void gp_census_make_due(void)
{
    next_ns = held_bytes = 0;
}
