// SPDX-License-Identifier: MIT
#include "exact/exact_time.h"

#include "signal/slice.h"

enum { SETTLE_TRIES = 4 };

// Settle the account of the running coroutine: the thread may have been off the CPU. Returns the ticks then. The thread
// may be preempted once more on the way back: that would be taken off later, of what comes, so it is settled again.
// On an alternate stack of the host's it is not known how much is left, and a wait may be walked there.
static uint64_t exact_time_settle(gp_thread_t *thread, prof_coro_t *coro, bool on_alternate_stack)
{
    uint64_t now = gp_ticks();
    if (on_alternate_stack || atomic_load_explicit(&thread->busy, memory_order_relaxed))
        return now;
    for (int i = 0; i < SETTLE_TRIES && now > gp_ledger_edge_settled(coro) + gp_exact_gap_ticks; i++) {
        gp_slice_settle_now(thread);
        now = gp_ticks();
    }
    return now;
}

bool gp_exact_charge_time(gp_exact_stack_t *stack, gp_thread_t *thread, bool on_alternate_stack, uint64_t now)
{
    prof_coro_t *coro = stack->coro;
    uint64_t settled = gp_ledger_edge_settled(coro), from = stack->last_ticks;
    if (now == 0 || !gp_ticks_scale.counter)
        now = gp_ticks();
    if (now > (settled > from ? settled : from) + gp_exact_gap_ticks)
        now = exact_time_settle(thread, coro, on_alternate_stack);
    // Before the account is read: when a sample changes it meanwhile, the stack is not ready any more.
    if (stack == atomic_load_explicit(&thread->exact.stack, memory_order_relaxed)) {
        atomic_store_explicit(&thread->exact_ready, stack, memory_order_relaxed);
        gp_exact_hint = stack;
    }
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t cpu_ns = on_alternate_stack ? gp_ledger_edge_settled_cpu_ns(coro) : gp_ledger_edge_cpu_ns(coro, now);
    bool is_steady = !on_alternate_stack && (int64_t)(cpu_ns - gp_exact_stack_cpu_ns(stack)) >= 0;
    gp_exact_span_t span = gp_exact_stack_span(stack, now, cpu_ns);
    for (uint32_t i = 0, depth = gp_exact_depth(stack); i < stack->link_count; i++)
        gp_exact_charge(*gp_exact_node_at(stack, &stack->links[i], depth), &span);
    stack->last_ticks = from + span.ticks;
    stack->lag_ns += span.off_ns;
    return is_steady;
}
