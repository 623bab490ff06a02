// SPDX-License-Identifier: MIT
#include "report/counter_names.h"

#include <stddef.h>

#include "model/counters.h"

const char *gp_counter_name(uint32_t counter)
{
    static const char *const names[GP_COUNTER_COUNT] = {
        [GP_COUNTER_SIGNALS] = "signals",
        [GP_COUNTER_SAMPLES] = "samples",
        [GP_COUNTER_DROP_RING_FULL] = "drop_ring_full",
        [GP_COUNTER_DROP_REENTERED] = "drop_reentered",
        [GP_COUNTER_DROP_FOREIGN] = "drop_foreign",
        [GP_COUNTER_DROP_NO_THREAD] = "drop_no_thread",
        [GP_COUNTER_DROP_IDLE] = "drop_idle",
        [GP_COUNTER_SWITCHING] = "switching",
        [GP_COUNTER_TRUNCATED] = "truncated",
        [GP_COUNTER_INCOMPLETE] = "incomplete",
        [GP_COUNTER_OUTSIDE] = "outside",
        [GP_COUNTER_TIMER_FAILED] = "timer_failed",
        [GP_COUNTER_LOST_MARKS] = "lost_marks",
        [GP_COUNTER_UNSAMPLED_NS] = "unsampled_ns",
        [GP_COUNTER_UNWRITTEN] = "unwritten",
        [GP_COUNTER_WAIT_SAMPLES] = "wait_samples",
        [GP_COUNTER_LOST_WAITS] = "lost_waits",
        [GP_COUNTER_LOST_HOGS] = "lost_hogs",
        [GP_COUNTER_LOST_CALLS] = "lost_calls",
        [GP_COUNTER_MERGED_ACTIVITIES] = "merged_spans",
        [GP_COUNTER_SIGNAL_MOVED] = "signal_moved",
        [GP_COUNTER_LOST_SPAWNS] = "lost_spawns",
        [GP_COUNTER_UNPATCHED] = "unpatched",
        [GP_COUNTER_POLL_MISFIT] = "poll_misfit",
    };
    return counter < GP_COUNTER_COUNT ? names[counter] : NULL;
}

const char *gp_basis_name(gp_basis_t basis)
{
    static const char *const names[] = {
        [GP_BASIS_EXACT] = "exact",
        [GP_BASIS_ESTIMATED] = "estimated",
        [GP_BASIS_SAMPLED] = "sampled",
    };
    return names[basis];
}

const char *gp_measure_name(gp_measure_t measure)
{
    static const char *const names[] = {
        [GP_MEASURE_CPU] = "cpu", [GP_MEASURE_WALL] = "wall", [GP_MEASURE_DELAY] = "delay"};
    return names[measure];
}

const char *gp_measure_words(gp_measure_t measure)
{
    static const char *const words[] = {
        [GP_MEASURE_CPU] = "CPU time",
        [GP_MEASURE_WALL] = "wall-clock time",
        [GP_MEASURE_DELAY] = "delays of others",
    };
    return words[measure];
}
