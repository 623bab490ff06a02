// SPDX-License-Identifier: MIT
#include "coro/hook_time.h"

#include <stdatomic.h>

// No hook takes longer: the thread was preempted, or a sample was taken meanwhile.
enum { LONGEST_NS = 20000 };

__thread uint32_t gp_hook_time_left __attribute__((tls_model("initial-exec")));
static _Atomic int64_t more_ns;

void gp_hook_time_note(uint64_t took_ticks, unsigned switches)
{
    uint64_t took_ns = gp_ticks_to_ns(took_ticks);
    int64_t beyond_ns = (int64_t)(took_ns < LONGEST_NS ? took_ns : LONGEST_NS) - (int64_t)switches * GP_HOOK_SWITCH_NS;
    atomic_fetch_add_explicit(&more_ns, beyond_ns * GP_HOOK_TIMED_EVERY, memory_order_relaxed);
}

int64_t gp_hook_time_more_ns(void)
{
    return atomic_load_explicit(&more_ns, memory_order_relaxed);
}

void gp_hook_time_in_child(void)
{
    atomic_store_explicit(&more_ns, 0, memory_order_relaxed);
}
