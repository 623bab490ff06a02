// SPDX-License-Identifier: MIT
#include "signal/hog.h"

#include "signal/ledger_edges.h"
#include "signal/sample.h"

enum { ROOT_SHARE = 10 }; // of a loop, a delay below this share of the threshold is the end of its sleep

_Atomic uint64_t gp_ledger_edge_hog_ticks = UINT64_MAX;

void gp_hog_set_threshold(uint64_t ns)
{
    gp_ledger_edge_store(&gp_ledger_edge_hog_ticks, gp_ticks_from_ns(ns));
}

static void hog_copy_trace(uint64_t trace[2], prof_coro_t *coro)
{
    for (int i = 0; i < 2; i++)
        trace[i] = atomic_load_explicit(&gp_coro_context(coro)->trace[i], memory_order_relaxed);
}

static void hog_tell(gp_thread_t *thread, gp_hog_t *hog)
{
    gp_hog_mark_t *mark = gp_ring_reserve(&thread->ring, sizeof(*mark));
    if (mark == NULL) {
        gp_thread_count(thread, GP_COUNTER_LOST_HOGS);
        return;
    }
    mark->coro = hog->coro;
    mark->coro_id = hog->coro_id;
    hog_copy_trace(mark->trace, hog->coro);
    mark->start = hog->start;
    mark->end = hog->end;
    gp_thread_commit(thread, mark, GP_RING_HOG);
    hog->is_notified = true;
}

void gp_hog_over(gp_thread_t *thread, const gp_hog_t *over)
{
    gp_hog_t *hog = &thread->hog.latest[thread->hog.count++ % GP_HOGS];
    *hog = *over;
    thread->hog.end = hog->end;
    if (hog->coro != thread->root && !hog->coro->is_loop)
        hog_tell(thread, hog);
}

typedef struct overlap {  // of a slice with the time in which another coroutine was ready; ticks
    uint64_t all, unseen; // unseen: of it, when the other one may not have been ready yet
} overlap_t;

static void hog_blame(gp_thread_t *thread, gp_hog_t *hog, prof_coro_t *victim, uint64_t id, const overlap_t *with)
{
    if (!hog->is_notified)
        hog_tell(thread, hog);
    gp_delay_mark_t *mark = hog->is_notified ? gp_ring_reserve(&thread->ring, sizeof(*mark)) : NULL;
    if (mark == NULL) {
        gp_thread_count(thread, GP_COUNTER_LOST_HOGS);
        return;
    }
    mark->coro = victim;
    mark->coro_id = id;
    hog_copy_trace(mark->trace, victim);
    mark->hog_start = hog->start;
    mark->delay_ticks = with->all;
    mark->unseen_ticks = with->unseen;
    gp_thread_commit(thread, mark, GP_RING_DELAY);
}

static uint64_t hog_overlap(const gp_hog_t *hog, uint64_t from, uint64_t to)
{
    uint64_t begin = hog->start > from ? hog->start : from, end = hog->end < to ? hog->end : to;
    uint64_t asleep = hog->asleep > begin ? hog->asleep : begin, awake = hog->awake < end ? hog->awake : end;
    return end > begin ? end - begin - (awake > asleep ? awake - asleep : 0) : 0;
}

void gp_hog_victim(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, const gp_ledger_edge_wait_t *wait)
{
    unsigned count = thread->hog.count < GP_HOGS ? thread->hog.count : GP_HOGS;
    uint64_t from = wait->ready - wait->unseen;
    for (unsigned i = 1; i <= count; i++) {
        gp_hog_t *hog = &thread->hog.latest[(thread->hog.count - i) % GP_HOGS];
        if (hog->end <= from)
            return; // and so did all before it
        overlap_t with = {hog_overlap(hog, from, wait->now), hog_overlap(hog, from, wait->ready)};
        bool is_loop = hog->coro == thread->root || hog->coro->is_loop;
        uint64_t least = is_loop ? gp_ledger_edge_load(&gp_ledger_edge_hog_ticks) / ROOT_SHARE : 0;
        if (with.all > least && hog->coro != coro)
            hog_blame(thread, hog, coro, id, &with);
    }
}
