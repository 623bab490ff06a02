// SPDX-License-Identifier: MIT
#include "collect/open_sleep.h"

#include "coro/task.h"
#include "signal/ledger_edges.h"
#include "signal/slice.h"
#include "signal/ticks.h"

uint64_t gp_open_sleep_ns(gp_thread_t *thread, prof_coro_t *coro, uint64_t now)
{
    // Acquire: the rest is of that coarse point, or of a later one, which is noticed.
    uint64_t coarse = atomic_load_explicit(&thread->coarse_ticks, memory_order_acquire);
    uint64_t before = atomic_load_explicit(&thread->voluntary_switches, memory_order_acquire), switches;
    uint64_t over = gp_ledger_edge_load(&gp_ledger_edge_epoch_over), upto = now < over ? now : over,
             settled = gp_ledger_edge_settled(coro);
    uint64_t wall = upto > settled ? gp_ticks_to_ns(upto - settled) : 0;
    prof_coro_t *current;
    uint64_t used = gp_slice_open_ns(thread, &current);
    if (current != coro || wall < used + GP_AWAKE_NS ||
        !gp_task_voluntary_switches(atomic_load_explicit(&thread->tid, memory_order_relaxed), &switches))
        return 0;
    bool is_steady = atomic_load_explicit(&thread->coarse_ticks, memory_order_relaxed) == coarse &&
                     gp_ledger_edge_settled(coro) == settled;
    return is_steady && switches != before ? wall - used : 0;
}
