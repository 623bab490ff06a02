// SPDX-License-Identifier: MIT
#include "collect/collector.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "collect/children_unprofiled.h"
#include "collect/cost.h"
#include "collect/cpu_time.h"
#include "collect/cpu_without_sample.h"
#include "collect/found_stack.h"
#include "collect/functions.h"
#include "collect/hog_samples.h"
#include "collect/modules.h"
#include "collect/polled.h"
#include "collect/ready_threads.h"
#include "collect/ring_drain.h"
#include "collect/sampler.h"
#include "collect/thread_off.h"
#include "collect/thread_sleeps.h"
#include "collect/thread_timers.h"
#include "collect/wait_scan.h"
#include "coro/hook_cost.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/scope.h"
#include "coro/thread_rings.h"
#include "coro/threads.h"
#include "signal/handler.h"
#include "signal/language.h"
#include "signal/rest.h"
#include "signal/ticks.h"
#include "unwind/generated.h"
#include "unwind/unwind.h"

enum {
    COUNTER_TRIES = 1000,        // ~1 us each; a handler takes a few
    HOUSEKEEPING_NS = 500000000, // look for threads without a timer, for exited ones
    SYNC_LOOK_NS = 100000000,    // a caller that waits for a round looks whether there is a collector
    HOUSEKEEPING_SHARE = 100,    // which takes at most 1/100 of the time: there may be thousands of threads
};

enum {
    PAGE = 4096,
    EARLY_ROUNDS = 10, // short, as what the program does has only begun to show: handlers wait for its memory
    EARLY_NS = 10000000,
    IDLE_ROUNDS = 5,     // after which all that was recorded is written; as long as nothing follows, rounds come
    IDLE_NS = 500000000, // so seldom
};

static _Atomic bool running; // changed under the sampler lock
static _Atomic uint64_t round_ns = GP_COLLECTOR_ROUND_NS;
static _Atomic unsigned slowness = 100;
static _Atomic uint64_t look_by; // CLOCK_MONOTONIC; 0 = there is nothing to be in time for
// `wanted` is raised by callers waiting for a round; `done` follows it at the end of a round that began later.
static _Atomic uint32_t wanted, done, kicks;
static unsigned idle_rounds; // in a row, in which nothing had been told, and that nothing asked for
static bool is_forked;       // the process is a fork of one that was profiled

void gp_collector_kick(void)
{
    atomic_fetch_add_explicit(&kicks, 1, memory_order_release);
    gp_futex(&kicks, FUTEX_WAKE, 1, NULL);
}

int gp_collector_sync_within(uint64_t limit_ns)
{
    if (!atomic_load_explicit(&running, memory_order_acquire))
        return -ESRCH;
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC);
    uint32_t mine = atomic_fetch_add_explicit(&wanted, 1, memory_order_acq_rel) + 1;
    gp_collector_kick();
    for (;;) {
        // Acquire: partner of the release in collector_round_over(): what the round changed is visible.
        uint32_t now = atomic_load_explicit(&done, memory_order_acquire);
        uint64_t waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
        if ((int32_t)(now - mine) >= 0)
            return 0;
        if (waited >= limit_ns)
            return -ETIMEDOUT;
        if (!atomic_load_explicit(&running, memory_order_acquire))
            return -ESRCH; // the thread that would answer has ended
        uint64_t left = limit_ns - waited < SYNC_LOOK_NS ? limit_ns - waited : SYNC_LOOK_NS;
        struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        gp_futex(&done, FUTEX_WAIT, now, &timeout);
    }
}

void gp_collector_sync(void)
{
    gp_collector_sync_within(UINT64_MAX / 2);
}

static void collector_round_over(uint32_t answered)
{
    if ((int32_t)(answered - atomic_load_explicit(&done, memory_order_relaxed)) <= 0)
        return;
    atomic_store_explicit(&done, answered, memory_order_release);
    gp_futex(&done, FUTEX_WAKE, INT_MAX, NULL);
}

static void collector_end_thread(gp_thread_t *thread)
{
    gp_thread_sleeps_close(thread);
    GP_SINKS_CALL(thread_over, thread);
    gp_hog_forget(thread);
    gp_thread_sleeps_forget(thread);
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        gp_counters_gone[i] += atomic_exchange_explicit(&thread->counters[i], 0, memory_order_relaxed);
    gp_thread_recycle(thread);
}

static bool collector_is_gone(const gp_thread_t *thread)
{
    return syscall(SYS_tgkill, getpid(), atomic_load_explicit(&thread->tid, memory_order_relaxed), 0) != 0 &&
           errno == ESRCH;
}

// A gone thread has told of its end, if it could; another one may have its block by now. The registry lock keeps the
// block where it is: what is live after it was found gone ends here.
static bool collector_take_from_gone(gp_thread_t *thread)
{
    gp_lock(&gp_registry_lock);
    int live = GP_THREAD_LIVE;
    bool taken = collector_is_gone(thread) &&
                 atomic_compare_exchange_strong_explicit(&thread->state, &live, GP_THREAD_EXITED, memory_order_acq_rel,
                                                         memory_order_relaxed);
    gp_unlock(&gp_registry_lock);
    return taken;
}

// Threads that were found, not created under our eyes, end without telling.
static void collector_find_exited(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    gp_thread_helper_let_go();
    for (; thread != NULL; thread = thread->next) {
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE && collector_is_gone(thread) &&
            collector_take_from_gone(thread)) {
            prof_coro_t *root = thread->root; // the block is this thread's until it is drained
            gp_timers_disarm(thread);
            gp_thread_notify(thread);
            gp_coro_retire(root);
        }
    }
}

// A stack pointer on no known stack: give its mapping a record, so the next sample finds it.
static void collector_look_up_unknown(gp_thread_t *thread)
{
    uintptr_t sp = atomic_exchange_explicit(&thread->unknown_sp, 0, memory_order_relaxed);
    uint64_t id;
    if (sp != 0)
        gp_found_stack(thread, sp, &id);
}

// Touch the part of the ring that the next rounds fill if they are as full as this one, before a handler has to.
static void collector_warm_ring(gp_ring_t *ring)
{
    uint64_t start = gp_ring_start(ring), head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t used = head & (ring->capacity - 1);
    if (head == start || !gp_ring_has_turned(ring))
        return;
    uint64_t want = (used + 2 * gp_ring_fill(ring) + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    want = want < ring->capacity ? want : ring->capacity;
    if (want <= ring->warm)
        return;
    gp_unwind_warm_memory((unsigned char *)gp_ring_at(ring, start) + ring->warm, want - ring->warm);
    ring->warm = want;
}

// Where there is little room left.
static void collector_relieve(gp_thread_t *thread)
{
    if (!thread->ring.keeps || !gp_ring_is_pressed(&thread->ring))
        return;
    GP_SINKS_CALL(pressed, thread);
    gp_ring_relieve(&thread->ring);
}

// Returns whether a record is being written that the thread may not tell of: in one order with gp_thread_commit().
static bool collector_drain(gp_thread_t *thread)
{
    // Acquire: partner of the release in gp_thread_detach(): what an exited thread left is complete.
    int state = atomic_load_explicit(&thread->state, memory_order_acquire);
    collector_warm_ring(&thread->ring);
    gp_ring_drain_drain(thread);
    collector_relieve(thread);
    gp_thread_ring_rewind(thread);
    collector_look_up_unknown(thread);
    if (state == GP_THREAD_EXITED)
        collector_end_thread(thread);
    return state != GP_THREAD_EXITED && gp_ring_has_begun(&thread->ring);
}

// Returns whether there was anything told.
static bool collector_drain_all(void)
{
    bool is_any = false;
    gp_language_before_drain();
    gp_ready_threads_take();
    uint32_t slot = 0;
    for (gp_thread_t *thread; (thread = gp_thread_set_next(&gp_ready_threads, &slot)) != NULL;) {
        bool is_held_up = collector_drain(thread); // perhaps for ever: a signal handler may jump out of what writes
        if (!is_held_up)
            gp_thread_set_remove(&gp_ready_threads, thread);
        is_any = is_any || !is_held_up;
    }
    gp_language_after_drain();
    gp_generated_look();
    return is_any;
}

// Refresh modules and other targets of locations before samples are drained.
static void collector_refresh(void)
{
    bool changed = gp_modules_refresh();
    GP_SINKS_CALL(refresh, changed);
}

void gp_collector_drain(void)
{
    collector_refresh();
    collector_drain_all();
}

void gp_collector_between_pieces(void)
{
    gp_drain_pass();
    // Acquire: partner of gp_collector_sync().
    uint32_t answered = atomic_load_explicit(&wanted, memory_order_acquire);
    if (answered == atomic_load_explicit(&done, memory_order_relaxed))
        return;
    gp_collector_drain();
    collector_round_over(answered);
}

static void collector_round_of_all(void)
{
    gp_drain_take();
    GP_SINKS_CALL(round_begins);
    collector_refresh();
    prof_coro_t *retired = gp_coro_take_retired();
    bool is_idle = !collector_drain_all() && retired == NULL;
    idle_rounds = is_idle ? idle_rounds + 1 : 0;
    for (prof_coro_t *coro = retired; coro != NULL; coro = gp_coro_next_retired(coro))
        GP_SINKS_CALL(coro_over, coro);
    gp_coro_recycle(retired);
    gp_scope_recycle();
    GP_SINKS_CALL(round);
    gp_polled_round();
    gp_found_stacks_look();
    gp_unlock(&gp_drain_lock);
}

static uint64_t collector_until_look_ns(void)
{
    uint64_t by = atomic_load_explicit(&look_by, memory_order_relaxed), now = gp_clock_ns(CLOCK_MONOTONIC);
    return by == 0 ? UINT64_MAX : by > now ? by - now : 1;
}

// Is it said how soon what happens is to be written? Then nothing here is put off.
static bool collector_is_hurried(void)
{
    return atomic_load_explicit(&round_ns, memory_order_relaxed) < GP_COLLECTOR_ROUND_NS;
}

// Until the next round of a process that has been at rest for long.
static uint64_t collector_idle_ns(uint64_t all, uint64_t look_ns)
{
    if (all < IDLE_NS)
        all = IDLE_NS;
    return all < look_ns ? all : look_ns;
}

// Until the next round, `most_ns` at most.
static uint64_t collector_until_round_ns(bool sampling, uint64_t most_ns)
{
    uint64_t slow = atomic_load_explicit(&slowness, memory_order_relaxed), by_ns = collector_until_look_ns();
    uint64_t all = atomic_load_explicit(&round_ns, memory_order_relaxed) * slow / 100;
    all = all < most_ns ? all : most_ns;
    bool has_little = !sampling && slow > 100 && by_ns != UINT64_MAX; // as a rest
    return by_ns < all || has_little ? by_ns : all;
}

// Returns whether a kick came within `ns`.
static bool collector_is_kicked(uint32_t seen_kicks, uint64_t ns)
{
    struct timespec time = {.tv_nsec = (long)ns};
    uint64_t since = gp_clock_ns(CLOCK_MONOTONIC);
    bool is_woken = gp_futex(&kicks, FUTEX_WAIT, seen_kicks, &time) == 0 || errno != ETIMEDOUT;
    gp_thread_off_slept(since, ns);
    gp_ready_threads_wake();
    return is_woken;
}

// Wait for the first part of `*all`, up to the next look if there is one, and look. Returns whether a kick came.
static bool collector_wait_for_look(uint32_t seen_kicks, bool is_idle, uint64_t *waited, uint64_t *all)
{
    gp_look_t look;
    if (collector_is_hurried())
        gp_wait_scan_hurry();
    gp_wait_scan_plan(is_idle, &look);
    if (look.dozes && is_idle)
        *all = collector_idle_ns(*all, collector_until_look_ns());
    uint64_t left = *all - *waited, slow = atomic_load_explicit(&slowness, memory_order_relaxed);
    uint64_t next = look.dozes ? left : gp_wait_scan_next_ns(slow), step = next < left ? next : left;
    if (collector_is_kicked(seen_kicks, step)) {
        if (look.dozes) // a thread may leave its rest and sleep right after
            gp_wait_scan_hasten();
        return true;
    }
    gp_wait_scan_look(&look, step, gp_collector_drain);
    *waited += step;
    return false;
}

// Until a kick, or for a round, `most_ns` at most; with looks at sleepers where a sink wants to know of them.
static void collector_wait_for_next(uint32_t seen_kicks, uint64_t most_ns)
{
    bool sampling = atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed);
    if (!sampling && !gp_rest_is_now()) {
        uint64_t since = gp_clock_ns(CLOCK_MONOTONIC);
        gp_futex(&kicks, FUTEX_WAIT, seen_kicks, NULL);
        gp_thread_off_slept(since, UINT64_MAX);
        return;
    }
    bool looks = sampling && gp_wait_scan_are_wanted(), is_woken = false;
    uint64_t all = collector_until_round_ns(sampling, most_ns);
    if (!looks && collector_is_hurried())
        gp_wait_scan_hurry();
    if (!looks)
        is_woken = all > 0 && collector_is_kicked(seen_kicks, all);
    for (uint64_t waited = 0; looks && !is_woken && waited < all;)
        is_woken = collector_wait_for_look(
            seen_kicks, waited == 0 && idle_rounds >= IDLE_ROUNDS && !collector_is_hurried(), &waited, &all);
    if (is_woken)
        idle_rounds = 0;
}

// Or does it rest? Ends are told meanwhile all the same.
static int collector_is_sampling(void)
{
    return atomic_load_explicit(&gp_handler_sampling, memory_order_acquire) || gp_rest_is_now();
}

// A daemon closes all descriptors right after its fork and counts on the lowest numbers for its next files: the
// collector's own descriptors, which live for some microseconds, must not be among them.
static void collector_let_daemon_begin(void)
{
    struct timespec time = {.tv_nsec = GP_COLLECTOR_ROUND_NS};
    uint32_t seen_kicks = atomic_load_explicit(&kicks, memory_order_acquire);
    // Acquire: partner of gp_collector_sync(), which raises `wanted` before the kick: no caller waits in vain, as at a
    // short child's end.
    if (atomic_load_explicit(&wanted, memory_order_acquire) == atomic_load_explicit(&done, memory_order_relaxed))
        gp_futex(&kicks, FUTEX_WAIT, seen_kicks, &time);
}

static void *collector_collect(void *unused)
{
    (void)unused;
    uint64_t next_housekeeping = 0;
    unsigned rounds = 0;
    if (is_forked)
        collector_let_daemon_begin();
    gp_unwind_populate();
    gp_thread_off_slept(gp_clock_ns(CLOCK_MONOTONIC), 0);
    for (;;) {
        uint32_t seen_kicks = atomic_load_explicit(&kicks, memory_order_acquire);
        // Acquire: partner of gp_collector_sync(): samples committed before it was called are seen by this round.
        uint32_t answered = atomic_load_explicit(&wanted, memory_order_acquire);
        bool sampling = atomic_load_explicit(&gp_handler_sampling, memory_order_acquire);
        uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
        if (sampling)
            gp_sampler_look_at_signal();
        if (sampling && now >= next_housekeeping) {
            collector_find_exited();
            gp_sampler_look_for_threads();
            uint64_t pause = (gp_clock_ns(CLOCK_MONOTONIC) - now) * HOUSEKEEPING_SHARE;
            next_housekeeping = now + (pause > HOUSEKEEPING_NS ? pause : HOUSEKEEPING_NS);
        }
        collector_round_of_all();
        collector_round_over(answered);
        gp_sampler_stop_if_idle();
        if (!collector_is_sampling()) {
            collector_round_of_all(); // what was still in the rings
            gp_coro_set_draining(collector_is_sampling);
        }
        GP_SINKS_CALL(after_round);
        if (!gp_thread_helper_may_stay())
            break;
        if (!is_forked) // a child has what its parent touched, to be copied where it is written
            gp_unwind_warm();
        collector_wait_for_next(seen_kicks, rounds++ < EARLY_ROUNDS ? EARLY_NS : UINT64_MAX);
    }
    atomic_store_explicit(&running, false, memory_order_release);
    return NULL;
}

bool gp_collector_runs(void)
{
    return atomic_load_explicit(&running, memory_order_acquire);
}

int gp_collector_start(void)
{
    gp_coro_set_draining(NULL);
    if (atomic_load_explicit(&running, memory_order_relaxed)) {
        gp_collector_kick();
        return 0;
    }
    pthread_t thread;
    // Set before the thread begins: a thread told to leave at once takes it back.
    atomic_store_explicit(&running, true, memory_order_release);
    int error = gp_thread_start_own(collector_collect, NULL, &thread);
    if (error != 0) {
        atomic_store_explicit(&running, false, memory_order_release);
        return error;
    }
    pthread_detach(thread);
    return 0;
}

// A handler in progress has counted its signal, but not yet what became of it. Such a signal is left for the next time.
static void collector_add_counters(gp_thread_t *thread, uint64_t counters[GP_COUNTER_COUNT])
{
    uint64_t now[GP_COUNTER_COUNT] = {0};
    bool quiet = false;
    for (int i = 0; i < COUNTER_TRIES && !quiet; i++) {
        bool before = atomic_load_explicit(&thread->in_handler, memory_order_acquire);
        for (int j = GP_COUNTER_COUNT - 1; j >= 0; j--) // the signals last
            now[j] = atomic_load_explicit(&thread->counters[j], memory_order_acquire);
        uint64_t known = now[GP_COUNTER_SAMPLES] + gp_counters_dropped(now);
        quiet = now[GP_COUNTER_SIGNALS] == known;
        if (!quiet && before && now[GP_COUNTER_SIGNALS] == known + 1 && i == COUNTER_TRIES - 1)
            now[GP_COUNTER_SIGNALS] = known; // preempted in its handler
    }
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        counters[i] += now[i];
}

static void (*_Atomic others_counters)(uint64_t counters[GP_COUNTER_COUNT]);

void gp_collector_add_counters(void (*add)(uint64_t counters[GP_COUNTER_COUNT]))
{
    // Release: partner of the acquire below.
    atomic_store_explicit(&others_counters, add, memory_order_release);
}

void gp_collector_set_round(uint64_t ns)
{
    atomic_store_explicit(&round_ns, ns, memory_order_relaxed);
}

void gp_collector_slow_down(unsigned percent)
{
    atomic_store_explicit(&slowness, percent, memory_order_relaxed);
}

void gp_collector_look_by(uint64_t monotonic_ns)
{
    atomic_store_explicit(&look_by, monotonic_ns, memory_order_relaxed);
}

static void collector_add_rests(uint64_t counters[GP_COUNTER_COUNT])
{
    gp_rest_sums_t rests;
    gp_rest_read(gp_cpu_time_process(), &rests);
    counters[GP_COUNTER_RESTS] = rests.count;
    counters[GP_COUNTER_REST_NS] = rests.ns;
    counters[GP_COUNTER_REST_CPU_NS] = rests.cpu_ns;
}

void gp_collector_counters(uint64_t counters[GP_COUNTER_COUNT])
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        counters[i] = gp_counters_gone[i] + atomic_load_explicit(&gp_thread_orphan_counters[i], memory_order_relaxed);
    for (; thread != NULL; thread = thread->next) {
        collector_add_counters(thread, counters);
        if (atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed))
            gp_cpu_without_sample_add(thread, counters);
    }
    counters[GP_COUNTER_OTHER_FUNCTIONS] += gp_functions_unnamed();
    counters[GP_COUNTER_LOST_MODULES] += gp_modules_lost();
    collector_add_rests(counters);
    counters[GP_COUNTER_HOOK_NS] =
        gp_cost_hooks_ns(counters[GP_COUNTER_HOOK_NS], counters[GP_COUNTER_SWITCHES], gp_hook_cost_more_ns(),
                         counters[GP_COUNTER_SAMPLES], gp_cpu_time_process() - counters[GP_COUNTER_REST_CPU_NS]);
    counters[GP_COUNTER_DELIVERY_NS] = gp_cost_delivery_of(counters[GP_COUNTER_SIGNALS]);
    counters[GP_COUNTER_UNPROFILED_CHILDREN] = gp_children_unprofiled();
    void (*add)(uint64_t counters[GP_COUNTER_COUNT]) = atomic_load_explicit(&others_counters, memory_order_acquire);
    if (add != NULL)
        add(counters);
}

void gp_collector_after_fork(void)
{
    atomic_store_explicit(&running, false, memory_order_relaxed);
    atomic_store_explicit(&wanted, 0, memory_order_relaxed);
    atomic_store_explicit(&done, 0, memory_order_relaxed);
    memset(gp_counters_gone, 0, sizeof(gp_counters_gone));
    gp_hook_cost_in_child();
    gp_cost_delivery_in_child();
    gp_drain_after_fork();
    atomic_store_explicit(&look_by, 0, memory_order_relaxed);
    gp_ready_threads_forget();
    gp_thread_sleeps_after_fork();
    gp_ring_drain_after_fork();
    gp_children_unprofiled_in_child();
    gp_wait_scan_after_fork();
    idle_rounds = 0;
    is_forked = true;
}
