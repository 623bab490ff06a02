// SPDX-License-Identifier: MIT
// State of one thread. Blocks are mapped once and reused, never unmapped.
//
// Written by the thread itself and its handler unless a field says otherwise.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "model/counters.h"
#include "signal/coro_record.h"
#include "signal/otel_thread_record.h"
#include "signal/region.h"
#include "signal/ring.h"
#include "signal/thread_parts.h"
#include "unwind/unwind.h"

enum {
    GP_RING_BYTES = 1 << 18,
    GP_THREADS_MAX = 1 << 17, // blocks: of more threads than that at a time, the rest is not sampled
};

enum gp_thread_state { GP_THREAD_FREE, GP_THREAD_LIVE, GP_THREAD_EXITED };

// A thread's timer, as its clock engine (signal/clock_engine.h) left it.
typedef struct gp_timer {
    const struct gp_clock_engine *_Atomic engine; // that armed it last; NULL = none did
    bool armed;
    bool refused;                 // no engine could arm it: it is not tried again while sampling goes on
    _Atomic bool sent;            // a signal of it is under way: set by engines that send by themselves
    uint32_t block_left;          // samples until the period is drawn anew
    uint64_t period_ns;           // mean period asked for
    uint64_t cost_ns;             // running mean of what a sample takes
    _Atomic uint64_t drawn_ns;    // the period that the present interval was drawn from
    _Atomic uint64_t set_ns;      // the same, or the interval itself where it was set by others
    _Atomic uint64_t interval_ns; // that was drawn last
    _Atomic uint64_t slowed_ns;   // shortest interval to bear its cost, where longer than the period; else 0
    uint32_t random;              // state of the generator that draws it
    uint64_t state[11];           // the engine's own; zero before the first arm(), and kept when it is prepared anew
} gp_timer_t;

// Where a thread recently switched to, by page: right as long as the table of regions has not changed. Pages, so that a
// stack carved out of another one is not taken for the latter. Here and not in a thread-local of its own: a process
// that loads the library late (Python) has room for next to none.
typedef struct gp_recent_switch {
    uint64_t version, id;
    uintptr_t lo, hi; // within one page
    prof_coro_t *coro;
} gp_recent_switch_t;

enum { GP_RECENT_SWITCHES = 64 };

typedef struct gp_thread {
    struct {             // the program's alternate stack, see host_stack.h
        uintptr_t fresh; // no handler has returned from it since it was set: the top of ours; else 0
        bool is_away;    // ours is in the place of:
        stack_t stack;
        uint64_t since_cpu_ns; // thread CPU clock when it went away
    } host_stack;              // first: the restorer is assembly
    _Atomic int state;         // enum gp_thread_state
    _Atomic pid_t tid;
    uint32_t index; // never reused in a process
    uint32_t slot;  // of the block in gp_thread_blocks, constant
    _Atomic bool in_handler;
    _Atomic bool has_news; // gp_thread_notify() was called since the collector took note of the last call
    bool adopted;          // the thread has set its own pointer to this block
    bool keyed;            // and will give it back when it ends

    // Identity. `current` is a hint, see gp_thread_coro_at(). From here on to `activity.least` is what every switch
    // reads and writes: a cache line and two words.
    _Alignas(64) prof_coro_t *root; // record of the thread's own stack
    _Atomic(prof_coro_t *) current;
    _Atomic uint64_t current_id;
    // Exact mode's stack of it; NULL since another coroutine runs or the account changed, other than by the passing of
    // time.
    _Atomic(struct gp_exact_stack *) exact_ready;

    // Accounting, see slice.c.
    _Atomic bool busy; // the thread is changing the fields below: its handler leaves them alone
    uint32_t epoch;    // sampling epoch for which they hold
    _Atomic uint64_t
        slice_start;          // ticks at which the current coroutine was switched to, or its account was settled last
    int64_t root_limit_ticks; // slice_ticks of the thread's own stack with which the CPU clock is read next

    // Waits in samples, see wait_samples.c; by the thread itself.
    struct {
        int64_t left;           // ticks of waiting until the next sampled point
        uint64_t period;        // ticks of waiting a sample stands for
        uint64_t rest;          // ticks from the last sampled point to the end of its period
        uint32_t random, count; // generator; samples since `window`
        uint64_t window;
    } wait;
    struct {            // the timeline, see activity.h
        uint64_t least; // ticks: longer waits end an activity
        uint64_t window;
        uint32_t count; // activities since `window`
    } activity;

    uint64_t root_id;
    _Atomic uint64_t coarse_cpu_ns;      // thread CPU clock at the last coarse point
    _Atomic uint64_t coarse_ticks;       // when that was; and then:
    uint64_t coarse_root_ticks;          // slice_ticks of the thread's own stack
    int64_t debt_ns;                     // charged too much so far, to be taken off what comes
    _Atomic uint64_t voluntary_switches; // context switches of the thread when it was last found off the CPU

    struct {                   // which creations of coroutines are looked at, see src/core/coro/spawn.h
        uint32_t left, random; // until the next one; generator
    } spawn;
    gp_thread_hogs_t hog;       // see hog.c
    gp_thread_loop_t loop;      // see ledger_edges.h
    unsigned char *spare_stack; // top of a stack for work that a coroutine's stack may be too small for

    gp_thread_cpu_t cpu;
    bool blocks_all; // a hook blocks all signals for a moment (spare_stack.h)
    struct {
        uintptr_t pc, sp;
        bool is_small; // the handler ran on a small alternate stack: it blocked the sampling signal (collect/shield.h)
    } returned_to;     // by the program's latest handler since the last sample, see held_back.h

    gp_timer_t timer; // changed under the sampler's lock, and by the handler's redraw
    gp_ring_t ring;
    _Atomic uint64_t counters[GP_COUNTER_COUNT];
    _Atomic(prof_coro_t *) sharer; // the last switched to among sharers of a stack by copying; NULL = none
    _Atomic uint64_t sharer_id;
    _Atomic uint64_t unknown_sp; // a stack pointer on no known stack, for the collector to look up; 0 = none

    gp_recent_switch_t recent_switches[GP_RECENT_SWITCHES]; // by the switch hook
    uintptr_t handler_entry;                                // stack address at which the handler began
    uintptr_t registers[33];
    uintptr_t frames[GP_UNWIND_DEPTH_DEFAULT];
    uintptr_t parked_frames[GP_UNWIND_DEPTH_DEFAULT];
    uintptr_t language_frames[GP_UNWIND_DEPTH_DEFAULT], mixed_frames[GP_UNWIND_DEPTH_DEFAULT];

    gp_thread_language_t language;
    gp_thread_ended_t ended;

    gp_otel_thread_record_t shown; // src/core/coro/otel_thread_context.h
    void *volatile *shown_at;      // the thread-local that points to it; NULL = not yet
    uint32_t spare_span;           // number + 1 of a free slot for a span; its own, kept for the next thread. 0 = none

    gp_thread_exact_t exact; // beside exact_ready
    gp_thread_gil_t gil;

    // Registry and collector only.
    stack_t alternate_stack;
    void *(*start_routine)(void *);
    void *start_argument;
    uint64_t start_ticks, end_ticks;
    uint32_t generation; // of the block
    bool ring_turns;     // see coro/thread_rings.h; under the registry lock
    char name[24];
    gp_thread_look_t look;
    uint64_t census_sleeps; // how often it had fallen asleep as the present census began; UINT64_MAX = not known
    gp_thread_off_t off;
    struct gp_thread_sleep *sleep;    // of an ordinary thread, see src/core/collect/thread_sleeps.c
    struct gp_hog_buffer *hog_buffer; // samples of its latest slice, see src/core/collect/hog_samples.c
    gp_thread_recorded_t session;
    struct gp_thread *next;                  // list of all blocks, append-only
    _Atomic(struct gp_thread *) next_of_tid; // of the same bucket of thread ids
    struct gp_thread *next_free;
} gp_thread_t;

// The calling thread's block, or NULL before it is known.
extern __thread gp_thread_t *gp_thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

// All blocks; append-only. Acquire to read.
extern _Atomic(gp_thread_t *) gp_thread_list;

// Some coroutine's stack may lie within a thread's own: then being on the thread's stack is not the whole answer.
extern _Atomic bool gp_thread_nested __attribute__((visibility("hidden")));

// Counts for signals that reach a thread without a block, and what else belongs to no thread.
extern _Atomic uint64_t gp_thread_orphan_counters[GP_COUNTER_COUNT];

// The same by slot: what is in here stays. Acquire to read. And the bits of those that have news for the collector.
extern _Atomic(gp_thread_t *) gp_thread_blocks[GP_THREADS_MAX];
extern _Atomic uint64_t gp_thread_notified[GP_THREADS_MAX / 64];
extern _Atomic bool gp_thread_notifies_birth; // threads call gp_thread_notify() as they begin

// Reasons to wake the collector up.
enum gp_thread_wakes {
    GP_THREAD_WAKES_NONE,
    GP_THREAD_WAKES_AT_ONCE, // what is told at once: it looks at no thread
    GP_THREAD_WAKES_ANY,     // whatever is told: its next round is far
};
extern _Atomic int gp_thread_wakes; // enum gp_thread_wakes

// Find a live block by thread id. Signals: safe. Cost: ~5 ns, however many threads there are. A block that
// another thread puts into the table at this moment may be missed, but not with the registry's lock held.
gp_thread_t *gp_thread_find(pid_t tid);

// Give a block the id under which it is found. Caller holds the registry's lock.
void gp_thread_set_tid(gp_thread_t *thread, pid_t tid);

// The slow path of gp_thread_notify(): the collector does not know yet.
void gp_thread_notify_first(gp_thread_t *thread);

// Wake the collector up, unless that was done since it began to look at no thread.
void gp_thread_wake_collector(void);

// Let the collector come to this thread in its next round: there is something in its ring, it may run coroutines, or it
// has ended. Threads that have not told it anything cost the collector nothing. Signals: safe. Cost: ~6 ns; a system
// call where all has been at rest for long.
static inline void gp_thread_notify(gp_thread_t *thread)
{
    // Acquire and release: partner of the exchange in src/core/collect/ready_threads.c. Either the collector sees the
    // news, or we see that it took them.
    if (!atomic_exchange_explicit(&thread->has_news, true, memory_order_acq_rel))
        gp_thread_notify_first(thread);
}

// The same where that cannot wait for a round: the thread may be about to sleep where only looks find it. Signals:
// safe. Cost: ~7 ns; a system call where the collector looks at no thread, as all are at rest.
static inline void gp_thread_notify_at_once(gp_thread_t *thread)
{
    gp_thread_notify(thread);
    if (atomic_load(&gp_thread_wakes) != GP_THREAD_WAKES_NONE) // in one order with what gp_thread_notify_first() does
        gp_thread_wake_collector();
}

// A record of the thread's ring is complete. Signals: safe. Cost: ~1 ns where the collector is told already: then
// nothing is written, and nothing waits until what was written before has reached the memory.
static inline void gp_thread_commit(gp_thread_t *thread, void *record, enum gp_ring_type type)
{
    gp_ring_commit(record, type);
    // seq_cst here, in gp_ring_reserve(), in src/core/collect/ready_threads.c, and in the look of
    // src/core/collect/collector.c after it: either we see that the collector has to be told, or it sees a record,
    // complete or not, and comes again.
    if (__builtin_expect(!atomic_load(&thread->has_news), 0))
        gp_thread_notify(thread);
}

// The current coroutine where that is sure to have `sp` on its stack, as it mostly has; NULL: gp_thread_coro_at() is to
// be asked. Signals: safe.
static inline prof_coro_t *gp_thread_current_at(gp_thread_t *thread, uintptr_t sp)
{
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uint64_t id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    bool is_sure = current != NULL &&
                   (current != thread->root || !atomic_load_explicit(&gp_thread_nested, memory_order_relaxed)) &&
                   gp_region_holds(current, id, sp);
    return is_sure ? current : NULL;
}

// The coroutine with `sp` on its stack, for a context of this thread: the current one where its region does (or where
// it has none and `sp` is on the thread's own stack), else whichever region does, else the thread's own.
//   outside: set to true where no known stack holds it. Signals: safe.
prof_coro_t *gp_thread_coro_at(gp_thread_t *thread, uintptr_t sp, uint64_t *id, bool *outside);

static inline void gp_thread_count(gp_thread_t *thread, enum gp_counter counter)
{
    gp_coro_add(&thread->counters[counter], 1);
}
