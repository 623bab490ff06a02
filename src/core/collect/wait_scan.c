// SPDX-License-Identifier: MIT
#include "collect/wait_scan.h"

#include "collect/drain_lock.h"
#include "collect/ready_threads.h"
#include "collect/scan_pace.h"
#include "collect/sink.h"
#include "collect/sleep_scan.h"
#include "collect/thread_sleeps.h"
#include "coro/threads.h"

enum { REST_NS = 40000000 }; // a longer rest ends with a system call, to wake the collector up

static _Atomic unsigned stretch = 1; // of the time between two looks
static bool is_drained;              // since the present look began. Guarded by the drain lock
static void (*drain_rings)(void);    // the collector's
static uint64_t rest_ns;             // of looks in a row that left no thread to be looked at
static gp_scan_pace_t pace;

void gp_wait_scan_drain(void)
{
    if (!is_drained)
        drain_rings();
    is_drained = true;
}

void gp_wait_scan_look(const gp_look_t *look, uint64_t after_ns, void (*drain)(void))
{
    bool found = false;
    gp_drain_take();
    drain_rings = drain;
    gp_ready_threads_take();
    gp_thread_sleeps_begin_round(look->with_threads);
    gp_thread_t *thread;
    is_drained = false;
    for (uint32_t slot = 0; (thread = gp_thread_set_next(&gp_ready_threads_lookers, &slot)) != NULL;)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE ||
            !gp_sleep_scan_look(thread, &found))
            gp_thread_set_remove(&gp_ready_threads_lookers, thread);
    uint32_t first = 0;
    rest_ns = gp_thread_set_next(&gp_ready_threads_lookers, &first) != NULL ? 0 : rest_ns + after_ns;
    gp_scan_pace_note(&pace, after_ns, found);
    gp_drain_leave();
}

// Have all threads been at rest for a while? Then one that no longer is wakes the collector up; `for_long`: any that
// does anything.
static bool wait_scan_doze(bool for_long)
{
    if (rest_ns < REST_NS)
        return false;
    gp_drain_take();
    bool dozes = gp_ready_threads_doze(for_long);
    gp_drain_leave();
    return dozes;
}

static bool wait_scan_wants_threads(void)
{
    unsigned count = atomic_load_explicit(&gp_sink_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (gp_sinks[i]->wants_threads != NULL && gp_sinks[i]->wants_threads())
            return true;
    return false;
}

bool gp_wait_scan_are_wanted(void)
{
    unsigned count = atomic_load_explicit(&gp_sink_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (gp_sinks[i]->wants_waits != NULL && gp_sinks[i]->wants_waits())
            return true;
    return false;
}

void gp_wait_scan_plan(bool for_long, gp_look_t *look)
{
    look->with_threads = wait_scan_wants_threads();
    look->dozes = wait_scan_doze(for_long);
    if (look->with_threads)
        gp_scan_pace_reset(&pace);
}

uint64_t gp_wait_scan_next_ns(uint64_t slow)
{
    uint64_t least_ns = GP_LOOK_NS * (uint64_t)atomic_load_explicit(&stretch, memory_order_relaxed);
    return gp_scan_pace_next_ns(&pace, least_ns) * slow / 100;
}

void gp_wait_scan_hurry(void)
{
    gp_scan_pace_reset(&pace);
}

void gp_wait_scan_hasten(void)
{
    gp_scan_pace_hasten(&pace);
}

void gp_wait_scan_stretch(unsigned times)
{
    atomic_store_explicit(&stretch, times, memory_order_relaxed);
}

void gp_wait_scan_after_fork(void)
{
    gp_scan_pace_reset(&pace);
    rest_ns = 0;
}
