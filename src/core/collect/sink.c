// SPDX-License-Identifier: MIT
#include "collect/sink.h"

#include "collect/drain_lock.h"

const gp_sink_t *gp_sinks[GP_SINKS_MAX];
_Atomic unsigned gp_sink_count;

void gp_sink_add(const gp_sink_t *sink)
{
    gp_drain_enter();
    unsigned count = atomic_load_explicit(&gp_sink_count, memory_order_relaxed);
    gp_sinks[count] = sink;
    // Release: partner of the acquires of those that go through the list.
    atomic_store_explicit(&gp_sink_count, count + 1, memory_order_release);
    gp_drain_leave();
}

void gp_sink_replace(const gp_sink_t *sink, const gp_sink_t *by)
{
    unsigned count = atomic_load_explicit(&gp_sink_count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        if (gp_sinks[i] == sink)
            gp_sinks[i] = by;
}
