// SPDX-License-Identifier: MIT
#include "collect/sleep_scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "collect/cpu_time.h"
#include "collect/lock_scan.h"
#include "collect/open_sleep.h"
#include "collect/ready_threads.h"
#include "collect/ring_drain.h"
#include "collect/scan_pace.h"
#include "collect/thread_sleeps.h"
#include "collect/wait_scan.h"
#include "collect/waiting_stack.h"
#include "coro/registry.h"
#include "coro/task.h"
#include "signal/gil_wait.h"
#include "signal/language.h"
#include "signal/ledger_edges.h"
#include "signal/scope_record.h"
#include "signal/slice.h"

enum {
    // On its own stack for so long: leaving that is a long slice's end, which tells the collector.
    AT_HOME_NS = 4 * GP_SLICE_LONG_ROOT_NS,
    PAUSE_MAX_NS = 1000000000, // between two looks at a sleep that goes on
    PAUSE_SHARE = 64,          // and no longer than this part of it
};

typedef struct sleep { // of a thread, in a system call
    long call;
    uintptr_t arguments[3]; // the first ones
    uintptr_t sp, pc;
} sleep_t;

// Source: proc_pid_syscall(5): "running" also where it waits for a processor, or the number, six arguments, the stack
// pointer and the program counter.
static bool sleep_scan_find_sleep(pid_t tid, sleep_t *sleep)
{
    char text[256];
    return gp_task_read(tid, "syscall", text, sizeof(text)) &&
           sscanf(text, "%ld %lx %lx %lx %*s %*s %*s %lx %lx", &sleep->call, &sleep->arguments[0], &sleep->arguments[1],
                  &sleep->arguments[2], &sleep->sp, &sleep->pc) == 6 &&
           sleep->call >= 0;
}

// Where the thread was not looked at since before the present slice: what it had used when that began, or a little
// earlier.
static void sleep_scan_begin_at_slice(gp_thread_t *thread, uint64_t since)
{
    uint64_t ticks = atomic_load_explicit(&thread->coarse_ticks, memory_order_acquire);
    uint64_t cpu_ns = atomic_load_explicit(&thread->coarse_cpu_ns, memory_order_acquire);
    bool is_steady = atomic_load_explicit(&thread->coarse_ticks, memory_order_relaxed) == ticks;
    if (is_steady && ticks > thread->look.ticks && ticks <= since) {
        thread->look.ticks = ticks;
        thread->look.cpu_ns = cpu_ns;
    }
}

static uint64_t sleep_scan_cpu_ns_of(gp_thread_t *thread)
{
    return gp_cpu_time_thread(atomic_load_explicit(&thread->tid, memory_order_relaxed));
}

// Has it a processor at this moment? To ask the kernel where it sleeps costs ten times as much.
static bool sleep_scan_runs_on(gp_thread_t *thread)
{
    return sleep_scan_cpu_ns_of(thread) != thread->look.cpu_ns;
}

// The time since the look before, as far as the present slice goes; 0 where the thread hardly slept.
static uint64_t sleep_scan_unseen_ns(gp_thread_t *thread, uint64_t since, uint64_t now)
{
    sleep_scan_begin_at_slice(thread, since);
    uint64_t cpu_ns = sleep_scan_cpu_ns_of(thread);
    uint64_t from = thread->look.ticks > since ? thread->look.ticks : since;
    uint64_t start = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks); // before it, recording may have rested
    from = from > start ? from : start;
    uint64_t wall = now > from ? gp_ticks_to_ns(now - from) : 0, used = cpu_ns - thread->look.cpu_ns;
    uint64_t gil_ns = gp_gil_waited_since(thread, now, &thread->look.gil); // which has samples of its own
    bool first = thread->look.ticks == 0;
    thread->look.ticks = now;
    thread->look.cpu_ns = cpu_ns;
    // `used` may be from before this slice as well: then it was hardly asleep in it.
    return first || wall < used + gil_ns + GP_AWAKE_NS || gp_gil_is_waited_for(thread) ? 0 : wall - gil_ns;
}

static bool sleep_scan_is_live(const gp_thread_t *thread)
{
    return atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE;
}

static bool sleep_scan_has(gp_thread_t *thread, const prof_coro_t *coro, uint64_t id)
{
    return atomic_load_explicit(&thread->current, memory_order_relaxed) == coro &&
           atomic_load_explicit(&thread->current_id, memory_order_relaxed) == id && sleep_scan_is_live(thread);
}

// Threads with a coroutine have told the collector.
gp_thread_t *gp_sleep_scan_thread_of(const prof_coro_t *coro, uint64_t id)
{
    if (coro->kind == GP_CORO_THREAD) {
        gp_thread_t *own = atomic_load_explicit(&gp_coro_rare(coro)->thread, memory_order_acquire);
        return own != NULL && own->root == coro && sleep_scan_is_live(own) ? own : NULL;
    }
    gp_thread_t *thread = NULL;
    gp_ready_threads_take();
    for (uint32_t slot = 0;
         (thread = gp_thread_set_next(&gp_ready_threads_lookers, &slot)) != NULL && !sleep_scan_has(thread, coro, id);)
        ;
    return thread;
}

static size_t sleep_scan_walk_language(gp_thread_t *thread, uintptr_t *frames, size_t max, unsigned *flags)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    return language != NULL ? language->walk_asleep(thread, frames, max, flags) : 0;
}

// Does it still sleep as it did?
static bool sleep_scan_sleeps_on(gp_thread_t *thread, const sleep_t *sleep)
{
    sleep_t now;
    return sleep_scan_find_sleep(atomic_load_explicit(&thread->tid, memory_order_relaxed), &now) &&
           now.sp == sleep->sp && now.pc == sleep->pc;
}

static int sleep_scan_walk_from(gp_thread_t *thread, const sleep_t *sleep, prof_coro_t *coro, uint64_t since,
                                uintptr_t *frames, size_t max, unsigned *flags)
{
    *flags = 0;
    uintptr_t lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    uintptr_t hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
    if (lo == hi) { // shares the thread's stack
        lo = atomic_load_explicit(&thread->root->lo, memory_order_relaxed);
        hi = atomic_load_explicit(&thread->root->hi, memory_order_relaxed);
    }
    gp_unwind_regs_t regs = {.pc = sleep->pc, .sp = sleep->sp};
    if (sleep->sp < lo || sleep->sp >= hi)
        return 0;
    size_t depth = sleep_scan_walk_language(thread, frames, max, flags);
    if (depth == 0)
        depth = gp_waiting_stack_walk_from(&regs, true, hi, frames, max, flags);
    if (depth > 0 && sleep->call == SYS_futex)
        depth = gp_lock_scan_put(thread, sleep->arguments, frames, depth, max, flags);
    return sleep_scan_sleeps_on(thread, sleep) && gp_ledger_edge_load(&coro->since) == since ? (int)depth : -EAGAIN;
}

int gp_sleep_scan_walk(gp_thread_t *thread, prof_coro_t *coro, uint64_t since, uintptr_t *frames, size_t max,
                       unsigned *flags)
{
    sleep_t sleep;
    *flags = 0;
    if (!sleep_scan_find_sleep(atomic_load_explicit(&thread->tid, memory_order_relaxed), &sleep))
        return -EAGAIN;
    return sleep_scan_walk_from(thread, &sleep, coro, since, frames, max, flags);
}

// Samples since the look for its sleep are not handed on yet: then the thread was awake.
static bool sleep_scan_was_sampled(gp_thread_t *thread)
{
    return gp_ring_unread(&thread->ring) != 0;
}

static bool sleep_scan_hand_on(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t since, uint64_t weight_ns)
{
    static gp_sample_buffer_t buffer; // guarded by the drain lock
    unsigned flags;
    sleep_t sleep;
    if (!sleep_scan_find_sleep(atomic_load_explicit(&thread->tid, memory_order_relaxed), &sleep))
        return false;
    gp_wait_scan_drain();
    if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE)
        return false;
    int depth =
        sleep_scan_walk_from(thread, &sleep, coro, since, buffer.sample.frames, GP_UNWIND_DEPTH_DEFAULT, &flags);
    if (depth <= 0 || sleep_scan_was_sampled(thread))
        return false;
    buffer.sample = (gp_sample_t){
        .coro = coro,
        .coro_id = id,
        .slice = since,
        .ticks = thread->look.ticks,
        .weight_ns = weight_ns,
        .depth = (uint64_t)depth,
        .flags = flags,
        .scope = gp_waiting_stack_scope(coro),
    };
    gp_waiting_stack_trace(coro, buffer.sample.trace);
    gp_ring_drain_take_sleep(thread, &buffer.sample);
    return true;
}

static bool sleep_scan_is_at_home(gp_thread_t *thread, prof_coro_t *coro, uint64_t now)
{
    uint64_t since = gp_ledger_edge_load(&coro->since);
    return coro == thread->root && now > since && gp_ticks_to_ns(now - since) > AT_HOME_NS;
}

// How long it is left alone after the look before, ticks: the longer the longer it was asleep then.
static uint64_t sleep_scan_pause_of(const gp_thread_t *thread, uint64_t since)
{
    if (thread->look.asleep == 0 || thread->look.slice != since)
        return 0;
    uint64_t pause = (thread->look.ticks - thread->look.asleep) / PAUSE_SHARE, most = gp_ticks_from_ns(PAUSE_MAX_NS);
    return pause < most ? pause : most;
}

// The time since the look before, as far as it is this sleep's. Where it woke up in a long pause, half of that was the
// sleep before, on average.
static uint64_t sleep_scan_unseen_of_sleep_ns(gp_thread_t *thread, uint64_t since, uint64_t now, uint64_t pause)
{
    uint64_t cpu_ns = thread->look.cpu_ns, unseen = sleep_scan_unseen_ns(thread, since, now);
    return gp_ticks_to_ns(pause) > GP_LOOK_NS && thread->look.cpu_ns != cpu_ns ? unseen / 2 : unseen;
}

// A look has found it asleep, or not; `cpu_ns`: what it had used at the look before.
static void sleep_scan_note_sleep(gp_thread_t *thread, uint64_t since, uint64_t cpu_ns, bool sleeps)
{
    bool goes_on = thread->look.asleep != 0 && thread->look.slice == since && thread->look.cpu_ns == cpu_ns;
    thread->look.slice = since;
    thread->look.asleep = !sleeps ? 0 : goes_on ? thread->look.asleep : thread->look.ticks;
}

static bool sleep_scan_look(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now, uint64_t pause)
{
    uint64_t since = gp_ledger_edge_load(&coro->since), cpu_ns = thread->look.cpu_ns;
    uint64_t unseen = sleep_scan_unseen_of_sleep_ns(thread, since, now, pause);
    bool sleeps = unseen > 0 && coro != thread->root && !sleep_scan_runs_on(thread) &&
                  sleep_scan_hand_on(thread, coro, id, since, unseen);
    sleep_scan_note_sleep(thread, since, cpu_ns, sleeps);
    return sleeps;
}

bool gp_sleep_scan_look(gp_thread_t *thread, bool *found)
{
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uint64_t id = atomic_load_explicit(&thread->current_id, memory_order_relaxed), now = gp_ticks();
    if (gp_thread_sleeps_look(thread, now))
        return true;
    if (coro == NULL || sleep_scan_is_at_home(thread, coro, now))
        return false;
    if (gp_ledger_edge_load(&coro->id) != id)
        return true;
    uint64_t since = gp_ledger_edge_load(&coro->since), pause = sleep_scan_pause_of(thread, since);
    if (now - thread->look.ticks >= pause && sleep_scan_look(thread, coro, id, now, pause))
        *found = true;
    return true;
}

void gp_sleep_scan_look_now(gp_thread_t *thread)
{
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_acquire);
    uint64_t id = atomic_load_explicit(&thread->current_id, memory_order_relaxed), now = gp_ticks();
    if (coro == NULL || coro == thread->root || gp_ledger_edge_load(&coro->id) != id ||
        sleep_scan_was_sampled(thread) || now < thread->look.ticks + gp_ticks_from_ns(2 * GP_AWAKE_NS))
        return;
    sleep_scan_look(thread, coro, id, now, sleep_scan_pause_of(thread, gp_ledger_edge_load(&coro->since)));
}
