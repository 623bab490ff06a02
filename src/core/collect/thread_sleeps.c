// SPDX-License-Identifier: MIT
#include "collect/thread_sleeps.h"

#include <string.h>

#include "collect/cpu_time.h"
#include "collect/hog_samples.h"
#include "collect/ready_threads.h"
#include "collect/ring_drain.h"
#include "collect/sleep_scan.h"
#include "collect/thread_off.h"
#include "collect/wait_scan.h"
#include "collect/waiting_stack.h"
#include "coro/helper_memory.h"
#include "signal/gil_wait.h"
#include "signal/ledger_edges.h"

enum {
    ROUND_LOOKS = 32,          // 0.3 ms each 5 ms
    PAUSE_MAX_NS = 1000000000, // between two looks at a sleep that goes on
    PAUSE_SHARE = 16,          // and no longer than this part of it
    PREEMPTED_NS = 1000000,    // less than this is told later
    LAST_WORK_NS = 200000,     // less CPU time than this is a thread's way to its end
    FRAMES_MAX = 500,          // of a stack that is kept; a deeper one has nothing once it is over
};

typedef struct gp_thread_sleep {
    uint32_t thread;        // index: a block is used again
    uint64_t ticks, cpu_ns; // of the last look
    uint64_t began;         // the look at which the present sleep was first seen
    uint64_t pause;         // ticks until the next look
    uint64_t gil;           // gp_gil_waited() at the last look
    uint64_t depth;         // of the stack of the sleep; 0 = it did not sleep
    unsigned flags;
    uintptr_t frames[FRAMES_MAX];
} gp_thread_sleep_t;

static bool is_on;          // guarded by the drain lock, as all of these
static unsigned looks_left; // of the present round
static uint32_t first_slot; // threads before it had their turn in the last round

static uint64_t thread_sleeps_ticks_of(uint64_t ns)
{
    return gp_ticks_from_ns(ns);
}

void gp_thread_sleeps_after_fork(void)
{
    is_on = false;
}

void gp_thread_sleeps_begin_round(bool is_wanted)
{
    if (is_wanted && !is_on)
        gp_ready_threads_look_at_all();
    is_on = is_wanted;
    if (looks_left > 0)
        first_slot = 0; // all had their turn
    looks_left = ROUND_LOOKS;
}

// Event loops sleep on the stacks of threads that have coroutines.
static bool thread_sleeps_is_ordinary(gp_thread_t *thread)
{
    return is_on && gp_thread_off_is_ordinary(thread);
}

static void thread_sleeps_first_look(gp_thread_t *thread, uint64_t now, uint64_t cpu_ns)
{
    if (thread->sleep == NULL)
        thread->sleep = gp_own_map(sizeof(*thread->sleep));
    if (thread->sleep == NULL)
        return;
    thread->sleep->thread = thread->index;
    thread->sleep->ticks = now;
    thread->sleep->cpu_ns = cpu_ns;
    thread->sleep->gil = gp_gil_waited(thread, now);
    thread->sleep->depth = thread->sleep->pause = 0;
    gp_thread_off_note(thread);
}

static gp_thread_sleep_t *thread_sleeps_sleep_of(const gp_thread_t *thread)
{
    return thread->sleep != NULL && thread->sleep->thread == thread->index ? thread->sleep : NULL;
}

bool gp_thread_sleeps_is_due(gp_thread_t *thread, uint64_t now)
{
    const gp_thread_sleep_t *sleep = thread_sleeps_sleep_of(thread);
    if (!thread_sleeps_is_ordinary(thread) || looks_left == 0 || thread->slot < first_slot)
        return false;
    return sleep == NULL || now - sleep->ticks >= sleep->pause;
}

// at: ticks at the end of the time that the sample stands for.
static gp_sample_buffer_t *thread_sleeps_fill(gp_thread_t *thread, const gp_thread_sleep_t *sleep, uint64_t at,
                                              uint64_t weight_ns)
{
    static gp_sample_buffer_t buffer; // guarded by the drain lock
    prof_coro_t *root = thread->root;
    buffer.sample = (gp_sample_t){
        .coro = root,
        .coro_id = thread->root_id,
        .slice = gp_ledger_edge_load(&root->since),
        .ticks = at,
        .weight_ns = weight_ns,
        .depth = sleep->depth,
        .flags = sleep->flags,
        .scope = gp_waiting_stack_scope(root),
    };
    memcpy(buffer.sample.frames, sleep->frames, sleep->depth * sizeof(sleep->frames[0]));
    gp_waiting_stack_trace(root, buffer.sample.trace);
    return &buffer;
}

static void thread_sleeps_hand_on(gp_thread_t *thread, const gp_thread_sleep_t *sleep, uint64_t at, uint64_t weight_ns)
{
    if (sleep->depth > 0 && weight_ns > 0)
        gp_ring_drain_take_sleep(thread, &thread_sleeps_fill(thread, sleep, at, weight_ns)->sample);
}

// Where does it sleep now, if it does?
static void thread_sleeps_walk(gp_thread_t *thread, gp_thread_sleep_t *sleep)
{
    static uintptr_t frames[GP_UNWIND_DEPTH_DEFAULT]; // guarded by the drain lock
    int depth = gp_sleep_scan_walk(thread, thread->root, gp_ledger_edge_load(&thread->root->since), frames,
                                   GP_UNWIND_DEPTH_DEFAULT, &sleep->flags);
    sleep->depth = depth > 0 && depth <= FRAMES_MAX ? (uint64_t)depth : 0;
    memcpy(sleep->frames, frames, sleep->depth * sizeof(frames[0]));
}

// The time after which a sleep that has gone on for `ticks` is looked at again.
static uint64_t thread_sleeps_pause(uint64_t ticks)
{
    uint64_t pause = ticks / PAUSE_SHARE, most = thread_sleeps_ticks_of(PAUSE_MAX_NS);
    return pause < most ? pause : most;
}

// A timed wait for a lock tells its own time, where it has not gone on for long.
static void thread_sleeps_tell_lock(gp_thread_t *thread, gp_thread_sleep_t *sleep, uint64_t now)
{
    uint64_t since = gp_ledger_edge_load(&thread->gil.since);
    if (gp_lock_is_waited_for(thread) && since != 0 && now > since)
        sleep->pause = thread_sleeps_pause(now - since);
    if (!gp_lock_wait_is_due(thread, now))
        return;
    thread_sleeps_walk(thread, sleep);
    if (sleep->depth > 0 && sleep->flags & GP_SAMPLE_LOCK) // else it is told by a later look, or the wait's end
        thread_sleeps_hand_on(thread, sleep, now, gp_ticks_to_ns(gp_lock_wait_take(thread, now)));
    sleep->depth = 0;
}

// The time since the last look; `is_same`: the thread slept all the while.
static uint64_t thread_sleeps_since_last_ns(const gp_thread_t *thread, gp_thread_sleep_t *sleep, uint64_t now,
                                            uint64_t cpu_ns, bool *is_same)
{
    uint64_t start = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks); // before it, recording may have rested
    uint64_t from = sleep->ticks > start ? sleep->ticks : start;
    uint64_t ns = now > from ? gp_ticks_to_ns(now - from) : 0;
    uint64_t gil_ns = gp_gil_waited_since(thread, now, &sleep->gil); // which has samples of its own
    ns = ns > gil_ns ? ns - gil_ns : 0;
    *is_same = cpu_ns == sleep->cpu_ns;
    sleep->ticks = now;
    sleep->cpu_ns = cpu_ns;
    return ns;
}

// Hand on time kept from the processor, beyond its samples: the thread was woken late from its last sleep, or is where
// it was sampled last.
static void thread_sleeps_hand_on_preempted(gp_thread_t *thread, const gp_thread_sleep_t *sleep, uint64_t now)
{
    uint64_t ticks, untold_ns = gp_thread_off_untold(thread);
    gp_stack_t latest = gp_hog_latest(thread, gp_ledger_edge_load(&thread->root->since), &ticks);
    if (untold_ns < PREEMPTED_NS || (sleep->depth == 0 && latest.depth == 0))
        return;
    gp_sample_buffer_t *buffer = thread_sleeps_fill(thread, sleep, now, untold_ns);
    gp_ring_drain_take_preempted(thread, &buffer->sample, sleep->depth > 0 ? NULL : &latest);
    gp_thread_off_told(thread, untold_ns);
}

static void thread_sleeps_look(gp_thread_t *thread, gp_thread_sleep_t *sleep, uint64_t now, uint64_t cpu_ns)
{
    bool is_same;
    uint64_t ns = thread_sleeps_since_last_ns(thread, sleep, now, cpu_ns, &is_same);
    if (!is_same) {
        gp_thread_off_note(thread);
        thread_sleeps_hand_on_preempted(thread, sleep, now);
    }
    thread_sleeps_hand_on(thread, sleep, is_same ? now : now - thread_sleeps_ticks_of(ns - ns / 2),
                          is_same ? ns : ns / 2);
    if (is_same && sleep->depth > 0) {
        sleep->pause = thread_sleeps_pause(now - sleep->began);
        return;
    }
    sleep->depth = sleep->pause = 0;
    if (gp_gil_is_waited_for(thread))
        thread_sleeps_tell_lock(thread, sleep, now);
    else
        thread_sleeps_walk(thread, sleep);
    thread_sleeps_hand_on(thread, sleep, now, is_same ? 0 : ns - ns / 2);
    sleep->began = now;
}

bool gp_thread_sleeps_look(gp_thread_t *thread, uint64_t now)
{
    if (!thread_sleeps_is_ordinary(thread))
        return false;
    if (!gp_thread_sleeps_is_due(thread, now))
        return true;
    gp_wait_scan_drain();
    if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE)
        return true;
    if (--looks_left == 0)
        first_slot = thread->slot + 1;
    uint64_t cpu_ns = gp_cpu_time_thread(atomic_load_explicit(&thread->tid, memory_order_relaxed));
    gp_thread_sleep_t *sleep = thread_sleeps_sleep_of(thread);
    if (sleep != NULL)
        thread_sleeps_look(thread, sleep, now, cpu_ns);
    else
        thread_sleeps_first_look(thread, now, cpu_ns);
    return true;
}

void gp_thread_sleeps_close(gp_thread_t *thread)
{
    bool is_same, is_live = atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE;
    gp_thread_sleep_t *sleep = thread_sleeps_sleep_of(thread);
    if (sleep == NULL)
        return;
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    uint64_t now = is_live ? gp_ticks() : thread->end_ticks;
    uint64_t cpu_ns =
        is_live ? gp_cpu_time_thread(tid) : atomic_load_explicit(&thread->cpu.final_ns, memory_order_relaxed);
    uint64_t used = cpu_ns - sleep->cpu_ns, ns = thread_sleeps_since_last_ns(thread, sleep, now, cpu_ns, &is_same);
    // A thread that woke up only to end: the sleep has the whole rest.
    bool is_whole = is_same || (!is_live && used < LAST_WORK_NS);
    thread_sleeps_hand_on(thread, sleep, is_whole ? now : now - thread_sleeps_ticks_of(ns - ns / 2),
                          is_whole ? ns : ns / 2);
    if (is_live)
        gp_thread_off_note(thread);
    thread_sleeps_hand_on_preempted(thread, sleep, now);
    sleep->depth = 0;
}

void gp_thread_sleeps_forget(gp_thread_t *thread)
{
    gp_own_unmap(thread->sleep, sizeof(*thread->sleep));
    thread->sleep = NULL;
}
