// SPDX-License-Identifier: MIT
#include "signal/ledger_edges.h"

#include "signal/activity.h"
#include "signal/hog.h"
#include "signal/wait_samples.h"

_Atomic uint32_t gp_ledger_edge_epoch GP_SWITCH_WORD;
_Atomic uint64_t gp_ledger_edge_epoch_ticks;
_Atomic uint64_t gp_ledger_edge_epoch_over; // 0: nothing has sampled yet
_Atomic bool gp_ledger_edge_left_returns;

enum { EPOCHS = 1024 }; // that are remembered: half an hour of rests (rest.h)

static struct {
    _Atomic uint64_t end, recorded; // ticks; the latter of it and of all before
} past[EPOCHS];

static uint64_t ledger_edges_recorded_up_to(uint32_t epoch)
{
    return gp_ledger_edge_load(&past[epoch % EPOCHS].recorded);
}

void gp_ledger_edge_end_epoch(uint64_t now)
{
    if (gp_ledger_edge_load(&gp_ledger_edge_epoch_over) == UINT64_MAX)
        gp_ledger_edge_store(&gp_ledger_edge_epoch_over, now);
}

void gp_ledger_edge_keep_epoch(uint64_t now)
{
    uint32_t epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    uint64_t start = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks),
             over = gp_ledger_edge_load(&gp_ledger_edge_epoch_over);
    uint64_t end = over < now ? over : now;
    gp_ledger_edge_store(&past[epoch % EPOCHS].end, end);
    gp_ledger_edge_store(&past[epoch % EPOCHS].recorded,
                         ledger_edges_recorded_up_to(epoch - 1) + (end > start ? end - start : 0));
}

// The end of a past epoch; 0 = not known any more.
static uint64_t ledger_edges_end_of(uint32_t epoch)
{
    uint32_t now = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_acquire);
    return now - epoch < EPOCHS ? gp_ledger_edge_load(&past[epoch % EPOCHS].end) : 0;
}

uint64_t gp_ledger_edge_recorded_since(uint32_t epoch, uint64_t since)
{
    uint32_t now = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_acquire);
    uint64_t end = ledger_edges_end_of(epoch);
    if (now == epoch)
        return 0;
    if (now - epoch >= EPOCHS)
        epoch = now - EPOCHS + 1;
    return (end > since ? end - since : 0) + ledger_edges_recorded_up_to(now - 1) - ledger_edges_recorded_up_to(epoch);
}

// The wait that was left when its epoch ended, as far as it was recorded. Ready, if it was reported: up to that end.
static uint64_t ledger_edges_end_old_wait(prof_coro_t *coro, bool ran, uint64_t ready)
{
    uint32_t epoch = atomic_load_explicit(&coro->epoch, memory_order_relaxed);
    uint64_t since = ran ? UINT64_MAX : gp_ledger_edge_load(&coro->since), end = ledger_edges_end_of(epoch);
    uint64_t waited = ready < GP_EDGE_IDLE ? gp_ledger_edge_recorded_since(epoch, since) : 0;
    bool was_ready = ready != 0 && ready < end && since < end;
    if (waited == 0)
        return 0;
    if (was_ready)
        gp_coro_add(&coro->ready_wait_ticks, end - (ready > since ? ready : since));
    if (was_ready || gp_ledger_edge_is_reported(coro))
        gp_coro_add(&coro->ready_known_ticks, was_ready && !gp_ledger_edge_is_reported(coro) ? end - since : waited);
    return waited;
}

void gp_ledger_edge_touch_anew(prof_coro_t *coro, uint32_t epoch)
{
    uint64_t start = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks), waited = gp_ledger_edge_waited(coro);
    uint64_t ready = gp_ledger_edge_load(&coro->ready_ticks);
    bool ran = atomic_load_explicit(&coro->running, memory_order_relaxed) != 0;
    waited += ledger_edges_end_old_wait(coro, ran, ready);
    if (ran) // what the account has of a slice without an end: what comes from here on is another one
        gp_ledger_edge_end_slice(coro, gp_ledger_edge_settled_ticks(coro));
    gp_ledger_edge_store(&coro->begun, start - waited - gp_ledger_edge_load(&coro->slice_ticks));
    gp_ledger_edge_store(&coro->since, start);
    gp_ledger_edge_store(&coro->settled, start);
    gp_ledger_edge_store(&coro->unsampled_from, start);
    gp_ledger_edge_store(&coro->ready_ticks, ready > start && ready < GP_EDGE_IDLE ? ready : 0); // reported in this one
    gp_activity_begin_with_epoch(coro);
    atomic_store_explicit(&coro->running, 0, memory_order_relaxed);
    atomic_store_explicit(&coro->park_pc, 0, memory_order_relaxed);
    atomic_store_explicit(&coro->epoch, epoch, memory_order_release);
}

// Skip the time of an idle coroutine, or of one that is over and switched to once more, to be cleared away: it was no
// wait.
static void ledger_edges_skip_wait(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now)
{
    uint64_t since = gp_ledger_edge_load(&coro->since), from = gp_ledger_edge_load(&coro->unsampled_from);
    thread->wait.left += now > from ? (int64_t)(now - from) : 0;
    gp_ledger_edge_store(&coro->unsampled_from, UINT64_MAX);
    gp_ledger_edge_store(&coro->ready_ticks, 0);
    if (now > since && now - since >= thread->activity.least) {
        gp_activity_over(thread, coro, id, &(gp_ledger_edge_wait_t){.since = since, .now = since});
        gp_ledger_edge_store(&gp_coro_timeline(coro)->start, now);
    }
    gp_coro_add(&coro->begun, now > since ? now - since : 0);
}

// How long before `ready` the loop that found it ready had not looked.
static uint64_t ledger_edges_unseen_before(const gp_thread_t *thread, uint64_t since, uint64_t ready)
{
    for (size_t i = 0; i < GP_LATE_LOOKS; i++) {
        uint64_t from = thread->loop.late[i].from > since ? thread->loop.late[i].from : since;
        if (ready == thread->loop.late[i].at)
            return ready > from ? ready - from : 0;
    }
    return 0;
}

// How long it could run before it did.
static void ledger_edges_end_ready(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, gp_ledger_edge_wait_t *wait)
{
    uint64_t since = wait->since, now = wait->now, ready = wait->ready, ticks = now > since ? now - since : 0;
    gp_ledger_edge_store(&coro->ready_ticks, 0);
    if (ready == GP_EDGE_LEFT) {
        atomic_store_explicit(&gp_ledger_edge_left_returns, true, memory_order_relaxed);
        wait->ready = 0;
        return;
    }
    if (ready == coro->birth_ticks) { // which was not reported
        gp_coro_add(&coro->ready_known_ticks, ticks);
        gp_coro_add(&coro->ready_wait_ticks, ticks);
        return;
    }
    ready = ready > since + 1 ? ready : since; // or reported before it was switched to first
    ready = ready < now ? ready : now;         // a timer that it was woken before
    wait->ready = ready;
    wait->unseen = ledger_edges_unseen_before(thread, since, ready);
    gp_coro_add(&coro->ready_known_ticks, ticks - wait->unseen);
    atomic_store_explicit(&coro->is_reported, 1, memory_order_relaxed);
    gp_coro_add(&coro->ready_wait_ticks, now > ready ? now - ready : 0);
    if (thread->hog.end > ready - wait->unseen)
        gp_hog_victim(thread, coro, id, wait);
}

void gp_ledger_edge_end_wait(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now)
{
    gp_ledger_edge_wait_t wait = {.since = gp_ledger_edge_load(&coro->since),
                                  .now = now,
                                  .ready = gp_ledger_edge_load(&coro->ready_ticks),
                                  .is_new = gp_ledger_edge_is_new(coro)};
    if (wait.ready == GP_EDGE_OVER || wait.ready == GP_EDGE_IDLE) {
        ledger_edges_skip_wait(thread, coro, id, now);
        return;
    }
    if (wait.ready != 0)
        ledger_edges_end_ready(thread, coro, id, &wait);
    if ((now > wait.since ? now - wait.since : 0) >= thread->activity.least)
        gp_activity_over(thread, coro, id, &wait);
    if (thread->wait.left < 0)
        gp_wait_samples_over(thread, coro, id, &wait);
}
