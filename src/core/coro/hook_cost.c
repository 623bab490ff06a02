// SPDX-License-Identifier: MIT
#include "coro/hook_cost.h"

#include <stdatomic.h>

// No hook takes longer: the thread was preempted, or a sample was taken meanwhile.
enum { LONGEST_NS = 20000 };

__thread uint32_t gp_hook_cost_left __attribute__((tls_model("initial-exec")));
static _Atomic int64_t more_ns;

// Ticks for reading the clock twice: untimed calls do not pay them.
static uint64_t hook_cost_clock_ticks(void)
{
    enum { TRIES = 32 };
    static _Atomic uint64_t known;
    uint64_t least = atomic_load_explicit(&known, memory_order_relaxed);
    if (least != 0)
        return least;
    least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t begun = gp_ticks(), took = gp_ticks() - begun;
        least = took < least ? took : least;
    }
    atomic_store_explicit(&known, least != 0 ? least : 1, memory_order_relaxed);
    return least;
}

void gp_hook_cost_note(uint64_t took_ticks, unsigned switches)
{
    uint64_t took_ns = gp_ticks_to_ns(took_ticks);
    int64_t beyond_ns = (int64_t)(took_ns < LONGEST_NS ? took_ns : LONGEST_NS) - (int64_t)switches * GP_HOOK_SWITCH_NS;
    atomic_fetch_add_explicit(&more_ns, beyond_ns * GP_HOOK_TIMED_EVERY, memory_order_relaxed);
}

void gp_hook_cost_note_read(uint64_t between_ticks, unsigned switches)
{
    uint64_t clock = hook_cost_clock_ticks();
    gp_hook_cost_note(between_ticks > clock ? between_ticks - clock : 0, switches);
}

int64_t gp_hook_cost_more_ns(void)
{
    return atomic_load_explicit(&more_ns, memory_order_relaxed);
}

void gp_hook_cost_in_child(void)
{
    atomic_store_explicit(&more_ns, 0, memory_order_relaxed);
}
