// SPDX-License-Identifier: MIT
// Exact waiting time per coroutine: what being switched away from, and being switched to, does to its ledger.
//
// Model: a coroutine is either running or waiting, and the two edges between them are the switch hook's. The time
// between edges is either a slice, added to `slice_ticks`, or a wait: what is left of the time since `begun`
// (gp_ledger_edge_waited()). So the parts sum to the wall clock by construction, and a wait costs no addition. A wait
// during which prof_coro_ready() was called is parked up to then and ready from then on; one called while it still runs
// (a yield) makes all of it ready. A coroutine that a loop finds ready, after it has not looked for events for long,
// may have been ready all the while (gp_ledger_edge_looked()): this much of the wait stays undivided; without
// gp_ledger_edge_looked(), all of it. A coroutine that was never switched to has never parked: it is ready from its
// birth on. A coroutine older than sampling is taken to have been waiting since sampling started; one still waiting
// when sampling ended, up to then. After its last edge a coroutine does not wait: this time belongs to nothing.
//
// So `ready_ticks` is one of: 0, not known; birth_ticks, never switched to, and one more where prof_coro_ready() was
// called; ticks of prof_coro_ready(); GP_EDGE_OVER; GP_EDGE_LEFT; GP_EDGE_IDLE.
//
// Threads: the one that switches, between gp_slice_enter() and gp_slice_leave(). Signals: safe. Cost: ~5 ns a switch
// for both.
#pragma once

#include "signal/thread.h"
#include "signal/ticks.h"

// All that a switch reads of the process is in one place, which is one cache line, or two.
#define GP_SWITCH_WORD __attribute__((section("gp_switch_words")))

// Sampling epoch: raised whenever sampling starts, so that threads and coroutines begin their accounts anew.
extern _Atomic uint32_t gp_ledger_edge_epoch __attribute__((visibility("hidden")));
extern _Atomic uint64_t gp_ledger_edge_epoch_ticks; // when it began
extern _Atomic uint64_t gp_ledger_edge_epoch_over;  // when it ended, and sampling with it; UINT64_MAX = it goes on

// The present epoch is over, at `now`. Caller holds the sampler's lock.
void gp_ledger_edge_end_epoch(uint64_t now);

// Another epoch begins: keep facts of the last one for coroutines left in it. The same.
void gp_ledger_edge_keep_epoch(uint64_t now);

// Ticks recorded from `since` in `epoch` to the end of the epoch before the present one; where `epoch` is long ago, and
// `since` UINT64_MAX, those of the epochs after it.
uint64_t gp_ledger_edge_recorded_since(uint32_t epoch, uint64_t since);

// A slice at least this long is kept (see hog.h). Ticks.
extern _Atomic uint64_t gp_ledger_edge_hog_ticks __attribute__((visibility("hidden")));

typedef struct gp_ledger_edge_wait { // that is over; ticks
    uint64_t since, now;             // when it began and ended
    uint64_t ready;                  // since when the coroutine could run, 0 = not known
    uint64_t unseen;                 // for how long before that, at most
    bool is_new;                     // the coroutine was never switched to
} gp_ledger_edge_wait_t;

void gp_wait_samples_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id,
                          const gp_ledger_edge_wait_t *wait); // wait_samples.c
void gp_activity_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id,
                      const gp_ledger_edge_wait_t *wait);    // activity.c
void gp_hog_over(gp_thread_t *thread, const gp_hog_t *over); // hog.c
void gp_hog_victim(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, const gp_ledger_edge_wait_t *wait);

static inline uint64_t gp_ledger_edge_load(_Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void gp_ledger_edge_store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static inline uint64_t gp_ledger_edge_waited_until(uint64_t since, uint64_t begun, uint64_t slice_ticks)
{
    int64_t waited = (int64_t)(since - begun - slice_ticks);
    return waited > 0 ? (uint64_t)waited : 0; // read amidst a switch, or processors' counters differ by a few ticks
}

// Ticks of waiting, up to the coroutine's last edge.
static inline uint64_t gp_ledger_edge_waited(prof_coro_t *coro)
{
    return gp_ledger_edge_waited_until(gp_ledger_edge_load(&coro->since), gp_ledger_edge_load(&coro->begun),
                                       gp_ledger_edge_load(&coro->slice_ticks));
}

#define GP_EDGE_OVER UINT64_MAX       // over: the last wait, and one from which it is woken after all, do not count
#define GP_EDGE_LEFT (UINT64_MAX - 1) // the same, but that it may come back: then it was a wait

#define GP_EDGE_IDLE (UINT64_MAX - 2) // in its pool: until it is switched to again it does not wait

// Has it come back from GP_EDGE_LEFT? Then that is how this program switches.
extern _Atomic bool gp_ledger_edge_left_returns;

// Is it over, or idle, if it does not run?
static inline bool gp_ledger_edge_is_over(prof_coro_t *coro)
{
    return gp_ledger_edge_load(&coro->ready_ticks) >= GP_EDGE_IDLE;
}

// Are its edges of this epoch? Not where it had none since sampling started.
static inline bool gp_ledger_edge_is_of_epoch(prof_coro_t *coro)
{
    return atomic_load_explicit(&coro->epoch, memory_order_acquire) ==
           atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
}

// And do they still? Not once sampling has ended.
static inline bool gp_ledger_edge_is_current(prof_coro_t *coro)
{
    return gp_ledger_edge_is_of_epoch(coro) && gp_ledger_edge_load(&gp_ledger_edge_epoch_over) == UINT64_MAX;
}

// Since when it is runnable, ticks; 0 = not known.
static inline uint64_t gp_ledger_edge_ready(prof_coro_t *coro)
{
    uint64_t ready = gp_ledger_edge_load(&coro->ready_ticks);
    if (ready == coro->birth_ticks + 1)
        ready = coro->birth_ticks;
    return ready < GP_EDGE_IDLE && gp_ledger_edge_is_of_epoch(coro) ? ready : 0;
}

// Was it never switched to? For one that does not run.
static inline bool gp_ledger_edge_is_new(prof_coro_t *coro)
{
    return gp_ledger_edge_load(&coro->since) == coro->birth_ticks && gp_ledger_edge_ready(coro) != 0;
}

// Was it ever reported to have become ready?
static inline int gp_ledger_edge_is_reported(prof_coro_t *coro)
{
    return atomic_load_explicit(&coro->is_reported, memory_order_relaxed) != 0;
}

// On-CPU time of a running coroutine at `now`, ns, as if it had the CPU ever since its account was settled.
static inline uint64_t gp_ledger_edge_cpu_ns(prof_coro_t *coro, uint64_t now)
{
    uint64_t ticks = gp_ledger_edge_load(&coro->slice_ticks) + now - gp_ledger_edge_load(&coro->since);
    return gp_ticks_to_ns(ticks) - gp_ledger_edge_load(&coro->off_ns);
}

// Ticks up to which the account has the present slice: its beginning, where it was not settled since.
static inline uint64_t gp_ledger_edge_settled(prof_coro_t *coro)
{
    uint64_t since = gp_ledger_edge_load(&coro->since), settled = gp_ledger_edge_load(&coro->settled);
    return settled > since ? settled : since;
}

// On-CPU time as far as it is accounted for, ns.
static inline uint64_t gp_ledger_edge_settled_cpu_ns(prof_coro_t *coro)
{
    // Acquire: partner of the releases below.
    bool runs = atomic_load_explicit(&coro->running, memory_order_acquire) != 0;
    return gp_ledger_edge_cpu_ns(coro, runs ? gp_ledger_edge_settled(coro) : gp_ledger_edge_load(&coro->since));
}

// Ticks of the slice that it is in, as far as they are accounted for.
static inline uint64_t gp_ledger_edge_settled_ticks(prof_coro_t *coro)
{
    uint64_t since = gp_ledger_edge_load(&coro->since), settled = gp_ledger_edge_load(&coro->settled);
    return settled > since ? settled - since : 0; // or read amid a change
}

void gp_ledger_edge_touch_anew(prof_coro_t *coro, uint32_t epoch) __attribute__((cold));

// Accounts of an earlier epoch say nothing about where the coroutine is now.
static inline void gp_ledger_edge_touch(prof_coro_t *coro)
{
    uint32_t epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&coro->epoch, memory_order_relaxed) != epoch, 0))
        gp_ledger_edge_touch_anew(coro, epoch);
}

// A slice of so many ticks is over.
static inline void gp_ledger_edge_end_slice(prof_coro_t *coro, uint64_t ticks)
{
    gp_coro_add(&coro->slice_ticks, ticks);
    if (__builtin_expect(gp_word_is_below(&coro->longest_ticks, ticks), 0))
        gp_ledger_edge_store(&coro->longest_ticks, ticks);
}

// The coroutine waits from `now` on.
static inline void gp_ledger_edge_wait(prof_coro_t *coro, uint64_t now, const gp_park_t *park)
{
    atomic_store_explicit(&coro->park_pc, park->pc, memory_order_relaxed);
    atomic_store_explicit(&coro->park_sp, park->sp, memory_order_relaxed);
    atomic_store_explicit(&coro->park_fp, park->fp, memory_order_relaxed);
    gp_ledger_edge_store(&coro->since, now);
    gp_ledger_edge_store(&coro->unsampled_from, now);
    // Release: partner of the acquire in gp_ledger_read() and in the walk of a parked stack.
    atomic_store_explicit(&coro->running, 0, memory_order_release);
}

// `coro`, which was entered in this epoch, stops running at `now`. park: where it will go on; pc 0 = not known.
__attribute__((always_inline)) static inline void gp_ledger_edge_leave(prof_coro_t *coro, uint64_t now,
                                                                       const gp_park_t *park)
{
    uint64_t since = gp_ledger_edge_load(&coro->since);
    if (__builtin_expect(atomic_load_explicit(&coro->running, memory_order_relaxed) != 0, 1))
        gp_ledger_edge_end_slice(coro, now > since ? now - since : 0);
    gp_ledger_edge_wait(coro, now, park);
}

// The calling thread's loop, which had not looked for events since `from`, has looked at `at`, and found some:
// coroutines woken by it are ready from `at` on. A look that slept until an event came is not late.
static inline void gp_ledger_edge_looked(gp_thread_t *thread, uint64_t from, uint64_t at)
{
    thread->loop.is_late = at - from >= gp_ledger_edge_load(&gp_ledger_edge_hog_ticks);
    if (thread->loop.is_late)
        thread->loop.late[thread->loop.late_count++ % GP_LATE_LOOKS] = (gp_late_look_t){from, at};
}

// prof_coro_ready() was called for it by the loop of the calling thread: where the loop looked late, by that look.
static inline void gp_ledger_edge_ready_by_look(prof_coro_t *coro)
{
    const gp_thread_t *thread = gp_thread_self;
    if (thread != NULL && thread->loop.is_late && !gp_ledger_edge_is_new(coro))
        gp_ledger_edge_store(&coro->ready_ticks, thread->loop.late[(thread->loop.late_count - 1) % GP_LATE_LOOKS].at);
}

// The stack of a coroutine may not be aligned as the ABI has it: programs that make their own err there unnoticed.
// The rare part of a switch: `ready_ticks` is not 0, or the wait that ends at `now` ends an activity of the timeline,
// or is sampled.
GP_ARCH_ALIGNS void gp_ledger_edge_end_wait(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now);

// The coroutine runs from `now` on, which is not before it was settled last.
static inline void gp_ledger_edge_run(prof_coro_t *coro, uint64_t now)
{
    gp_ledger_edge_store(&coro->since, now);
    atomic_store_explicit(&coro->running, 1, memory_order_release);
}

// `coro`, live with `id`, runs from `now` on.
static inline void gp_ledger_edge_enter(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now)
{
    gp_ledger_edge_touch(coro);
    if (__builtin_expect(atomic_load_explicit(&coro->running, memory_order_relaxed) == 0, 1)) {
        uint64_t from = gp_ledger_edge_load(&coro->unsampled_from);
        // A thread's own stack waits while its coroutines run: that is their time.
        thread->wait.left -= coro->kind != GP_CORO_THREAD && now > from ? (int64_t)(now - from) : 0;
        if (thread->wait.left < 0 || gp_ledger_edge_load(&coro->ready_ticks) != 0 ||
            (int64_t)(now - gp_ledger_edge_load(&coro->since)) >= (int64_t)thread->activity.least)
            gp_ledger_edge_end_wait(thread, coro, id, now);
    }
    gp_ledger_edge_store(&coro->settled, now); // which may be past
    gp_ledger_edge_run(coro, now);
}
