// SPDX-License-Identifier: MIT
#include "signal/activity.h"

#include "signal/ledger_edges.h"
#include "signal/sampling.h"

enum {
    LEAST_NS = 100000,       // of a wait that is shown
    WINDOWS_PER_SECOND = 10, // how often the rate is looked at
    FEW = 4,                 // a window with a fourth of what is allowed halves `activity.least`
};

_Atomic bool gp_activity_wanted;
static _Atomic uint32_t most_per_second = GP_ACTIVITIES_PER_SECOND;

void gp_activity_set_most(uint32_t per_second)
{
    atomic_store_explicit(&most_per_second, per_second, memory_order_relaxed);
}

void gp_activity_begin(gp_thread_t *thread)
{
    bool wanted = atomic_load_explicit(&gp_activity_wanted, memory_order_relaxed);
    thread->activity.least = wanted ? gp_ticks_from_ns(LEAST_NS) : INT64_MAX;
    thread->activity.window = gp_ticks();
    thread->activity.count = 0;
}

static void activity_adapt(gp_thread_t *thread, uint64_t now)
{
    uint32_t most = atomic_load_explicit(&most_per_second, memory_order_relaxed) / WINDOWS_PER_SECOND;
    bool over = now - thread->activity.window >= gp_ticks_from_ns(1000000000u / WINDOWS_PER_SECOND);
    thread->activity.count++;
    if (!over && thread->activity.count < most)
        return;
    if (!over)
        thread->activity.least *= 2;
    else if (thread->activity.count < most / FEW && thread->activity.least / 2 >= gp_ticks_from_ns(LEAST_NS))
        thread->activity.least /= 2;
    thread->activity.window = now;
    thread->activity.count = 0;
}

// All but the wait's end.
static void activity_fill(gp_activity_mark_t *mark, prof_coro_t *coro, uint64_t id)
{
    gp_coro_timeline_t *timeline = gp_coro_timeline(coro);
    gp_coro_context_t *context = gp_coro_context(coro);
    uint64_t epoch = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    mark->coro = coro;
    mark->coro_id = id;
    for (int i = 0; i < 2; i++)
        mark->trace[i] = gp_ledger_edge_load(&context->trace[i]);
    mark->left = gp_ledger_edge_load(&coro->since);
    mark->start = gp_ledger_edge_load(&timeline->start);
    if (mark->start == 0) {
        mark->start = coro->birth_ticks > epoch ? coro->birth_ticks : epoch;
        mark->start = mark->start < mark->left ? mark->start : mark->left; // another epoch has just begun
    }
    mark->slice_ticks = gp_ledger_edge_load(&coro->slice_ticks) - gp_ledger_edge_load(&timeline->slice);
    mark->off_ns = gp_ledger_edge_load(&coro->off_ns) - gp_ledger_edge_load(&timeline->off_ns);
    mark->blocked_ns = gp_ledger_edge_load(gp_coro_blocked_ns(coro)) - gp_ledger_edge_load(&timeline->blocked_ns);
    mark->gil_ns = gp_ledger_edge_load(gp_coro_gil_ns(coro)) - gp_ledger_edge_load(&timeline->gil_ns);
    mark->lock_ns = gp_ledger_edge_load(gp_coro_lock_ns(coro)) - gp_ledger_edge_load(&timeline->lock_ns);
    mark->settled = mark->left;
    mark->waker = gp_ledger_edge_load(&timeline->waker);
    mark->thread = atomic_load_explicit(&timeline->thread, memory_order_relaxed);
}

void gp_activity_begin_with_epoch(prof_coro_t *coro)
{
    gp_coro_timeline_t *timeline = gp_coro_timeline(coro);
    bool wanted = atomic_load_explicit(&gp_activity_wanted, memory_order_relaxed);
    gp_coro_change(&timeline->start, 0);
    gp_coro_change(&timeline->slice, wanted ? gp_ledger_edge_load(&coro->slice_ticks) : 0);
    gp_coro_change(&timeline->off_ns, wanted ? gp_ledger_edge_load(&coro->off_ns) : 0);
    gp_coro_change(&timeline->blocked_ns, wanted ? gp_ledger_edge_load(gp_coro_blocked_ns(coro)) : 0);
    gp_coro_change(&timeline->gil_ns, wanted ? gp_ledger_edge_load(gp_coro_gil_ns(coro)) : 0);
    gp_coro_change(&timeline->lock_ns, wanted ? gp_ledger_edge_load(gp_coro_lock_ns(coro)) : 0);
}

static void activity_begin_anew(gp_thread_t *thread, prof_coro_t *coro, uint64_t now, uint64_t slice_ticks)
{
    gp_coro_timeline_t *timeline = gp_coro_timeline(coro);
    gp_ledger_edge_store(&timeline->start, now);
    gp_ledger_edge_store(&timeline->slice, slice_ticks);
    gp_coro_change(&timeline->off_ns, gp_ledger_edge_load(&coro->off_ns));
    gp_coro_change(&timeline->blocked_ns, gp_ledger_edge_load(gp_coro_blocked_ns(coro)));
    gp_coro_change(&timeline->gil_ns, gp_ledger_edge_load(gp_coro_gil_ns(coro)));
    gp_coro_change(&timeline->lock_ns, gp_ledger_edge_load(gp_coro_lock_ns(coro)));
    atomic_store_explicit(&timeline->thread, thread->index, memory_order_relaxed);
}

static void activity_tell(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t ready, uint64_t now)
{
    gp_activity_mark_t *mark = gp_ring_reserve(&thread->ring, sizeof(*mark));
    if (mark == NULL) {
        gp_thread_count(thread, GP_COUNTER_MERGED_ACTIVITIES);
        return;
    }
    activity_fill(mark, coro, id);
    if (mark->left < mark->start)
        mark->left = mark->start; // a later part of the wait
    mark->end = now;
    mark->ready = ready;
    mark->is_open = mark->is_waiting = false;
    gp_thread_commit(thread, mark, GP_RING_ACTIVITY);
    activity_begin_anew(thread, coro, now, gp_ledger_edge_load(&coro->slice_ticks));
    activity_adapt(thread, now);
    if (gp_ring_is_pressed(&thread->ring))
        gp_handler_kick();
}

// Parked up to when the loop did not look any more, either of both up to when it did, then ready.
static void activity_tell_in_parts(gp_thread_t *thread, prof_coro_t *coro, uint64_t id,
                                   const gp_ledger_edge_wait_t *wait)
{
    gp_coro_timeline_t *timeline = gp_coro_timeline(coro);
    uint64_t waker = gp_ledger_edge_load(&timeline->waker), unseen = wait->ready - wait->unseen;
    gp_ledger_edge_store(&timeline->waker, 0);
    if (unseen > wait->since)
        activity_tell(thread, coro, id, unseen, unseen);
    activity_tell(thread, coro, id, 0, wait->ready);
    gp_ledger_edge_store(&timeline->waker, waker);
    activity_tell(thread, coro, id, wait->ready, wait->now);
}

void gp_activity_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, const gp_ledger_edge_wait_t *wait)
{
    if (wait->unseen == 0)
        activity_tell(thread, coro, id, wait->ready, wait->now);
    else
        activity_tell_in_parts(thread, coro, id, wait);
}

void gp_activity_cut(gp_thread_t *thread, prof_coro_t *coro, uint64_t now)
{
    uint64_t slice = gp_ledger_edge_load(&coro->slice_ticks), since = gp_ledger_edge_load(&coro->since);
    if (thread->activity.least == INT64_MAX || !gp_ledger_edge_is_current(coro) ||
        !atomic_load_explicit(&coro->running, memory_order_relaxed) || now <= since)
        return;
    gp_activity_mark_t *mark = gp_ring_reserve(&thread->ring, sizeof(*mark));
    if (mark == NULL) {
        gp_thread_count(thread, GP_COUNTER_MERGED_ACTIVITIES);
        return;
    }
    activity_fill(mark, coro, atomic_load_explicit(&coro->id, memory_order_relaxed));
    mark->slice_ticks += now - since; // of the slice that goes on
    mark->left = mark->end = mark->settled = now;
    mark->ready = 0;
    mark->is_open = mark->is_waiting = false;
    gp_thread_commit(thread, mark, GP_RING_ACTIVITY);
    activity_begin_anew(thread, coro, now, slice + now - since);
}

bool gp_activity_last(prof_coro_t *coro, uint64_t id, uint64_t now, gp_activity_mark_t *mark)
{
    if (!gp_ledger_edge_is_current(coro))
        return false; // it has done nothing since sampling started, or that is over
    activity_fill(mark, coro, id);
    mark->ready = gp_ledger_edge_ready(coro);
    mark->ready = mark->ready < now ? mark->ready : now; // a timer to come
    mark->is_open = true;
    mark->is_waiting = atomic_load_explicit(&coro->running, memory_order_acquire) == 0;
    if (!mark->is_waiting) {
        mark->slice_ticks += now > mark->left ? now - mark->left : 0;
        mark->settled = gp_ledger_edge_settled(coro) < now ? gp_ledger_edge_settled(coro) : now;
        mark->left = now;
    }
    mark->end = mark->is_waiting && gp_ledger_edge_is_over(coro) ? mark->left : now;
    return mark->start <= mark->left && mark->left <= mark->end;
}

typedef struct edges { // fields that change wherever an activity begins, ends or changes
    uint64_t id, since, start;
    uint32_t trace_seq;
} edges_t;

static edges_t activity_edges_of(prof_coro_t *coro)
{
    // Acquire: what is read after it is no older.
    uint32_t trace_seq = atomic_load_explicit(&gp_coro_context(coro)->trace_seq, memory_order_acquire);
    edges_t edges = {.trace_seq = trace_seq};
    edges.id = atomic_load_explicit(&coro->id, memory_order_acquire);
    edges.since = atomic_load_explicit(&coro->since, memory_order_acquire);
    edges.start = atomic_load_explicit(&gp_coro_timeline(coro)->start, memory_order_acquire);
    return edges;
}

bool gp_activity_open(prof_coro_t *coro, uint64_t id, uint64_t now, gp_activity_mark_t *mark)
{
    edges_t before = activity_edges_of(coro);
    bool is_known = before.id == id && !(before.trace_seq & 1) && gp_activity_last(coro, id, now, mark);
    atomic_thread_fence(memory_order_acquire);
    edges_t after = activity_edges_of(coro);
    return is_known && before.id == after.id && before.since == after.since && before.start == after.start &&
           before.trace_seq == after.trace_seq && mark->slice_ticks <= mark->left - mark->start;
}
