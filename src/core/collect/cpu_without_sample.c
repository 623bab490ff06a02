// SPDX-License-Identifier: MIT
#include "collect/cpu_without_sample.h"

#include "collect/counter_sums.h"
#include "collect/cpu_time.h"
#include "collect/sampling_signal.h"
#include "coro/task.h"
#include "signal/clock_engine.h"
#include "signal/handler.h"

typedef struct unsampled {
    enum gp_counter counter;
    uint64_t ns;
} unsampled_t;

static bool cpu_without_sample_is_out_of_reach(const gp_thread_t *thread)
{
    return !thread->timer.armed || !gp_timer_is_alive(&thread->timer) ||
           gp_task_holds_back(atomic_load_explicit(&thread->tid, memory_order_relaxed), gp_sampling_signal());
}

// Why is only asked where a sample is overdue.
static unsampled_t cpu_without_sample_look_at(const gp_thread_t *thread, uint64_t cpu_ns)
{
    uint64_t sampled_ns = thread->cpu.sample_ns, ns = cpu_ns > sampled_ns ? cpu_ns - sampled_ns : 0;
    bool is_lost = ns > gp_timer_longest_gap_ns(&thread->timer) && cpu_without_sample_is_out_of_reach(thread);
    return (unsampled_t){is_lost ? GP_COUNTER_UNSAMPLED_NS : GP_COUNTER_PENDING_NS, ns};
}

static uint64_t cpu_without_sample_clock_of(const gp_thread_t *thread)
{
    return gp_cpu_time_thread(atomic_load_explicit(&thread->tid, memory_order_relaxed));
}

static bool cpu_without_sample_is_live(const gp_thread_t *thread)
{
    return atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE;
}

void gp_cpu_without_sample_add(const gp_thread_t *thread, uint64_t counters[GP_COUNTER_COUNT])
{
    if (!cpu_without_sample_is_live(thread))
        return;
    unsampled_t since = cpu_without_sample_look_at(thread, cpu_without_sample_clock_of(thread));
    counters[since.counter] += since.ns;
}

void gp_cpu_without_sample_keep(gp_thread_t *thread)
{
    if (!cpu_without_sample_is_live(thread))
        return;
    uint64_t cpu_ns = cpu_without_sample_clock_of(thread);
    unsampled_t since = cpu_without_sample_look_at(thread, cpu_ns);
    thread->cpu.sample_ns = cpu_ns > thread->cpu.sample_ns ? cpu_ns : thread->cpu.sample_ns;
    atomic_fetch_add_explicit(&thread->counters[since.counter], since.ns, memory_order_relaxed);
}

uint64_t gp_cpu_without_sample_ns(void)
{
    static const enum gp_counter which[] = {GP_COUNTER_UNSAMPLED_NS};
    uint64_t kept_ns, counters[GP_COUNTER_COUNT] = {0};
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_counters_sum(which, &kept_ns, 1);
    for (; thread != NULL && atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed); thread = thread->next)
        gp_cpu_without_sample_add(thread, counters);
    return kept_ns + counters[GP_COUNTER_UNSAMPLED_NS];
}
