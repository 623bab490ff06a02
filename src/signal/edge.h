// Exact waiting time per coroutine: what being switched away from, and being switched to, does to its ledger.
//
// Model: a coroutine is either running or waiting, and the two edges between them are the switch hook's. The time between
// edges goes to `slice_ticks` or `waited_ticks`, so that the parts sum to the wall clock by construction. A wait during
// which prof_coro_ready() was called is parked up to then and ready from then on; one called while it still runs (a yield)
// makes all of it ready. Where nobody calls it, the wait stays undivided.
// What existed before sampling started is taken to have been waiting since then.
//
// Threads: the one that switches, between enter() and leave() of slice.c. Signals: safe. Cost: ~9 ns a switch for both.
#ifndef GP_SIGNAL_EDGE_H
#define GP_SIGNAL_EDGE_H

#include "signal/thread.h"
#include "signal/ticks.h"

// Sampling epoch: raised whenever sampling starts, so that threads and coroutines begin their accounts anew.
extern _Atomic uint32_t gp_edge_epoch;
extern _Atomic uint64_t gp_edge_epoch_ticks; // when it began

// A slice at least this long is kept (see hog.h). Ticks.
extern _Atomic uint64_t gp_edge_hog_ticks;

void gp_wait_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t ready, uint64_t now); // wait.c
void gp_span_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t ready, uint64_t now); // span.c
void gp_hog_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t start, uint64_t now);  // hog.c
void gp_hog_victim(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t ready, uint64_t now);

static inline uint64_t gp_edge_load(_Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void gp_edge_store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

// Accounts of an earlier epoch say nothing about where the coroutine is now.
static inline void gp_edge_touch(prof_coro_t *coro)
{
    uint32_t epoch = atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&coro->epoch, memory_order_relaxed) == epoch, 1))
        return;
    uint64_t start = gp_edge_load(&gp_edge_epoch_ticks);
    gp_edge_store(&coro->since, start);
    gp_edge_store(&coro->unsampled_from, start);
    gp_edge_store(&coro->ready_ticks, 0);
    gp_edge_store(&coro->span_start, start);
    gp_edge_store(&coro->span_slice, gp_edge_load(&coro->slice_ticks));
    atomic_store_explicit(&coro->running, 0, memory_order_relaxed);
    atomic_store_explicit(&coro->park_pc, 0, memory_order_relaxed);
    atomic_store_explicit(&coro->epoch, epoch, memory_order_release);
}

// `coro`, which was entered in this epoch, stops running at `now`. park: where it will go on; NULL = not known.
__attribute__((always_inline)) static inline void gp_edge_leave(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now,
                                 const gp_park_t *park)
{
    uint64_t since = gp_edge_load(&coro->since);
    uint64_t ticks = now > since ? now - since : 0;
    if (__builtin_expect(atomic_load_explicit(&coro->running, memory_order_relaxed) != 0, 1)) {
        gp_coro_add(&coro->slice_ticks, ticks);
        if (ticks > gp_edge_load(&coro->longest_ticks))
            gp_edge_store(&coro->longest_ticks, ticks);
        if (__builtin_expect(ticks >= gp_edge_load(&gp_edge_hog_ticks), 0))
            gp_hog_over(thread, coro, id, since, now);
    }
    atomic_store_explicit(&coro->park_pc, park != NULL ? park->pc : 0, memory_order_relaxed);
    atomic_store_explicit(&coro->park_sp, park != NULL ? park->sp : 0, memory_order_relaxed);
    atomic_store_explicit(&coro->park_fp, park != NULL ? park->fp : 0, memory_order_relaxed);
    gp_edge_store(&coro->since, now);
    gp_edge_store(&coro->unsampled_from, now);
    // Release: partner of the acquire in gp_ledger_read() and in whoever walks a parked stack.
    atomic_store_explicit(&coro->running, 0, memory_order_release);
}

// `coro`, live with `id`, runs from `now` on.
__attribute__((always_inline)) static inline void gp_edge_enter(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now)
{
    gp_edge_touch(coro);
    if (__builtin_expect(atomic_load_explicit(&coro->running, memory_order_relaxed) == 0, 1)) {
        uint64_t since = gp_edge_load(&coro->since), ready = gp_edge_load(&coro->ready_ticks);
        uint64_t wait = now > since ? now - since : 0;
        gp_coro_add(&coro->waited_ticks, wait);
        if (ready == 0) {
            gp_coro_add(&coro->blind_ticks, wait);
        } else {
            gp_edge_store(&coro->ready_ticks, 0);
            ready = ready > since ? ready : since;
            gp_coro_add(&coro->ready_wait_ticks, now > ready ? now - ready : 0);
            if (__builtin_expect(thread->hog_end > ready, 0))
                gp_hog_victim(thread, coro, id, ready, now);
        }
        // A thread's own stack waits while its coroutines run: that is their time.
        uint64_t from = gp_edge_load(&coro->unsampled_from);
        thread->wait_left -= coro->kind != GP_CORO_THREAD && now > from ? (int64_t)(now - from) : 0;
        if (__builtin_expect(wait >= thread->span_least, 0))
            gp_span_over(thread, coro, id, ready, now);
        if (__builtin_expect(thread->wait_left < 0, 0))
            gp_wait_over(thread, coro, id, ready, now);
    }
    gp_edge_store(&coro->since, now);
    atomic_store_explicit(&coro->running, 1, memory_order_release);
}

#endif
