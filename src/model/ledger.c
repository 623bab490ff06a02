// SPDX-License-Identifier: MIT
#include "model/ledger.h"

void gp_ledger_add(gp_ledger_t *sum, const gp_ledger_t *more)
{
    sum->cpu_ns += more->cpu_ns;
    sum->blocked_ns += more->blocked_ns;
    sum->slice_ns += more->slice_ns;
    sum->ready_ns += more->ready_ns;
    sum->parked_ns += more->parked_ns;
    sum->waiting_ns += more->waiting_ns;
    sum->switches += more->switches;
    sum->spawned += more->spawned;
    sum->gil_ns += more->gil_ns;
    if (more->longest_ns > sum->longest_ns)
        sum->longest_ns = more->longest_ns;
}

void gp_ledger_subtract(gp_ledger_t *from, const gp_ledger_t *less)
{
    from->cpu_ns -= less->cpu_ns;
    from->blocked_ns -= less->blocked_ns;
    from->slice_ns -= less->slice_ns;
    from->ready_ns -= less->ready_ns;
    from->parked_ns -= less->parked_ns;
    from->waiting_ns -= less->waiting_ns;
    from->switches -= less->switches;
    from->spawned -= less->spawned;
    from->gil_ns -= less->gil_ns;
}

static uint64_t ledger_at_least_zero(uint64_t difference)
{
    return (int64_t)difference > 0 ? difference : 0;
}

uint64_t gp_ledger_kind_ns(const gp_ledger_t *ledger, enum gp_sample_kind kind)
{
    uint64_t off_ns = ledger_at_least_zero(ledger->slice_ns - ledger->cpu_ns),
             blocked_ns = ledger_at_least_zero(ledger->blocked_ns), gil_ns = ledger_at_least_zero(ledger->gil_ns);
    gil_ns = gil_ns < off_ns ? gil_ns : off_ns;
    switch (kind) {
    case GP_KIND_CPU:
        return ledger_at_least_zero(ledger->cpu_ns);
    case GP_KIND_PREEMPTED:
        return ledger_at_least_zero(off_ns - (blocked_ns > gil_ns ? blocked_ns : gil_ns));
    case GP_KIND_BLOCKED:
        return ledger_at_least_zero(blocked_ns - gil_ns);
    case GP_KIND_GIL:
        return gil_ns;
    case GP_KIND_QUEUED: // what is ready of a call in a pool: gp_dataset_coro_ns()
        return 0;
    case GP_KIND_PARKED:
        return ledger_at_least_zero(ledger->parked_ns);
    case GP_KIND_READY:
        return ledger_at_least_zero(ledger->ready_ns);
    default:
        return ledger_at_least_zero(ledger->waiting_ns);
    }
}
