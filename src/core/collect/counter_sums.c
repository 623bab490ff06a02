// SPDX-License-Identifier: MIT
#include "collect/counter_sums.h"

#include "signal/thread.h"

uint64_t gp_counters_gone[GP_COUNTER_COUNT];

void gp_counters_sum(const enum gp_counter which[], uint64_t sums[], size_t count)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (size_t i = 0; i < count; i++)
        sums[i] = gp_counters_gone[which[i]] +
                  atomic_load_explicit(&gp_thread_orphan_counters[which[i]], memory_order_relaxed);
    for (; thread != NULL; thread = thread->next)
        for (size_t i = 0; i < count; i++)
            sums[i] += atomic_load_explicit(&thread->counters[which[i]], memory_order_relaxed);
}
