// SPDX-License-Identifier: MIT
#include "coro/coro_ledger.h"

#include <errno.h>
#include <string.h>

#include "signal/ledger_edges.h"

void gp_ledger_begin(prof_coro_t *coro, uint64_t now)
{
    gp_coro_timeline_t *timeline = gp_coro_timeline(coro);
    gp_coro_rare_t *rare = gp_coro_rare(coro);
    _Atomic uint64_t *const sums[] = {&coro->ready_ticks,       &coro->off_ns,
                                      &coro->switches,          &coro->slice_ticks,
                                      &coro->ready_known_ticks, &coro->ready_wait_ticks,
                                      &coro->longest_ticks},
                            *const beside[] = {&rare->spawned,           &rare->polled_cpu_ns,  &rare->polled_slice_ns,
                                               &timeline->waker,         &timeline->start,      &timeline->slice,
                                               &timeline->off_ns,        &timeline->blocked_ns, &timeline->gil_ns,
                                               gp_coro_blocked_ns(coro), gp_coro_gil_ns(coro),  &timeline->lock_ns,
                                               gp_coro_lock_ns(coro)};
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        gp_ledger_edge_store(sums[i], 0);
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
        gp_coro_change(beside[i], 0);
    if (atomic_load_explicit(&timeline->thread, memory_order_relaxed) != 0)
        atomic_store_explicit(&timeline->thread, 0, memory_order_relaxed);
    atomic_store_explicit(&coro->park_pc, 0, memory_order_relaxed);
    gp_ledger_edge_store(&coro->begun, now);
    gp_ledger_edge_store(&coro->since, now);
    gp_ledger_edge_store(&coro->settled, now);
    gp_ledger_edge_store(&coro->unsampled_from, now);
    atomic_store_explicit(&coro->running, 0, memory_order_relaxed);
    atomic_store_explicit(&coro->is_reported, 0, memory_order_relaxed);
    atomic_store_explicit(&coro->epoch, atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed),
                          memory_order_relaxed);
}

// As far as it was recorded.
static uint64_t coro_ledger_since_edge(prof_coro_t *coro, uint64_t now)
{
    uint64_t since = gp_ledger_edge_load(&coro->since), over = gp_ledger_edge_load(&gp_ledger_edge_epoch_over),
             before = 0;
    if (!gp_ledger_edge_is_of_epoch(coro)) { // it has done nothing since sampling started
        bool ran = atomic_load_explicit(&coro->running, memory_order_relaxed) != 0;
        before = gp_ledger_edge_recorded_since(atomic_load_explicit(&coro->epoch, memory_order_relaxed),
                                               ran ? UINT64_MAX : since);
        since = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    }
    now = now < over ? now : over;
    return before + (now > since ? now - since : 0);
}

// The settled part of a slice that was open when sampling ended.
static uint64_t coro_ledger_left_slice(prof_coro_t *coro)
{
    bool is_left = !gp_ledger_edge_is_of_epoch(coro) && atomic_load_explicit(&coro->running, memory_order_relaxed) != 0;
    return is_left ? gp_ledger_edge_settled_ticks(coro) : 0;
}

static bool coro_ledger_is_running(prof_coro_t *coro)
{
    // Acquire: partner of the releases in edge.h.
    return atomic_load_explicit(&coro->running, memory_order_acquire) != 0 &&
           atomic_load_explicit(&coro->epoch, memory_order_relaxed) ==
               atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
}

// The slice that it is in, or was in when sampling ended.
static uint64_t coro_ledger_open_slice(prof_coro_t *coro, uint64_t now)
{
    return coro_ledger_is_running(coro) ? coro_ledger_since_edge(coro, now) : coro_ledger_left_slice(coro);
}

// Ticks running, waiting in all, waiting while runnable, waiting without any ready report.
static void coro_ledger_to_ledger(const gp_ledger_words_t *words, uint64_t slice, uint64_t waited, uint64_t ready,
                                  uint64_t blind, gp_ledger_t *ledger)
{
    *ledger = (gp_ledger_t){
        .blocked_ns = words->blocked_ns,
        .slice_ns = gp_ticks_to_ns(slice) + words->polled_slice_ns,
        .ready_ns = gp_ticks_to_ns(ready),
        .waiting_ns = gp_ticks_to_ns(blind),
        .parked_ns = gp_ticks_to_ns(waited > ready + blind ? waited - ready - blind : 0),
        .switches = words->switches,
        .gil_ns = words->gil_ns,
        .lock_ns = words->lock_ns,
    };
}

static uint64_t coro_ledger_blind_of(const gp_ledger_words_t *words, uint64_t waited)
{
    return waited > words->ready_known_ticks ? waited - words->ready_known_ticks : 0;
}

void gp_ledger_of_words(const prof_coro_t *coro, const gp_ledger_words_t *words, uint64_t ticks, gp_ledger_t *ledger)
{
    uint64_t slice = words->slice_ticks + (ticks > words->since ? ticks - words->since : 0);
    uint64_t waited = gp_ledger_edge_waited_until(words->since, words->begun, words->slice_ticks);
    bool has_waits = coro->kind != GP_CORO_THREAD && coro->kind != GP_CORO_POLLED;
    coro_ledger_to_ledger(words, slice, has_waits ? waited : 0, has_waits ? words->ready_wait_ticks : 0,
                          has_waits ? coro_ledger_blind_of(words, waited) : 0, ledger);
    ledger->cpu_ns = gp_ticks_to_ns(slice) - words->off_ns;
}

static void coro_ledger_read_at(prof_coro_t *coro, uint64_t now, bool with_wait, gp_ledger_t *ledger)
{
    gp_ledger_words_t words;
    gp_ledger_read_words(coro, &words);
    gp_coro_rare_t *rare = gp_coro_rare(coro);
    uint64_t open_ticks = coro_ledger_open_slice(coro, now), open = coro_ledger_since_edge(coro, now),
             since_ready = gp_ledger_edge_ready(coro);
    uint64_t waited = gp_ledger_edge_waited_until(words.since, words.begun, words.slice_ticks);
    uint64_t blind = coro_ledger_blind_of(&words, waited), ready = words.ready_wait_ticks;
    if (!coro_ledger_is_running(coro) && with_wait && !gp_ledger_edge_is_over(coro)) {
        uint64_t over = gp_ledger_edge_load(&gp_ledger_edge_epoch_over), upto = now < over ? now : over;
        uint64_t runnable = since_ready != 0 && upto > since_ready ? upto - since_ready : 0;
        waited += open;
        ready += runnable < open ? runnable : open;
        blind += since_ready == 0 && !gp_ledger_edge_is_reported(coro) ? open : 0;
    }
    if (coro->kind == GP_CORO_THREAD || coro->kind == GP_CORO_POLLED)
        waited = ready = blind = 0;
    coro_ledger_to_ledger(&words, words.slice_ticks + open_ticks, waited, ready, blind, ledger);
    uint64_t longest = gp_ticks_to_ns(gp_ledger_edge_load(&coro->longest_ticks)), open_ns = gp_ticks_to_ns(open_ticks);
    uint64_t longest_before = gp_coro_member(coro)->longest_before;
    ledger->cpu_ns = gp_ledger_edge_settled_cpu_ns(coro) + gp_ledger_edge_load(&rare->polled_cpu_ns);
    ledger->spawned = gp_ledger_edge_load(&rare->spawned);
    ledger->longest_ns = longest > longest_before ? longest : longest_before;
    if (open_ns > ledger->longest_ns)
        ledger->longest_ns = open_ns;
}

void gp_ledger_read(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger)
{
    coro_ledger_read_at(coro, now, true, ledger);
}

void gp_ledger_read_closed(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger)
{
    coro_ledger_read_at(coro, now, false, ledger);
}

static void coro_ledger_join(prof_ledger_t *full, uint64_t *field)
{
    if (full->size >= (size_t)((char *)(field + 1) - (char *)full))
        return;
    full->blocked_ns += *field;
    *field = 0;
}

int gp_ledger_give(const gp_ledger_t *ledger, prof_ledger_t *out)
{
    if (out == NULL || out->size < sizeof(size_t) || out->size > sizeof(*out))
        return -EINVAL;
    prof_ledger_t full = {
        .size = out->size,
        .cpu_ns = gp_ledger_kind_ns(ledger, GP_KIND_CPU),
        .blocked_ns = gp_ledger_kind_ns(ledger, GP_KIND_BLOCKED),
        .preempted_ns = gp_ledger_kind_ns(ledger, GP_KIND_PREEMPTED),
        .ready_ns = gp_ledger_kind_ns(ledger, GP_KIND_READY),
        .parked_ns = gp_ledger_kind_ns(ledger, GP_KIND_PARKED),
        .waiting_ns = gp_ledger_kind_ns(ledger, GP_KIND_WAITING),
        .longest_ns = ledger->longest_ns,
        .switches = ledger->switches,
        .spawned = ledger->spawned,
        .gil_ns = gp_ledger_kind_ns(ledger, GP_KIND_GIL),
        .lock_ns = gp_ledger_kind_ns(ledger, GP_KIND_LOCK),
    };
    // A program built before these were told apart has them as sleep.
    coro_ledger_join(&full, &full.gil_ns);
    coro_ledger_join(&full, &full.lock_ns);
    full.wall_ns = full.cpu_ns + full.blocked_ns + full.preempted_ns + full.ready_ns + full.parked_ns +
                   full.waiting_ns + full.gil_ns + full.lock_ns;
    memcpy(out, &full, out->size);
    return 0;
}

uint64_t gp_ledger_longest_since_entry(prof_coro_t *coro, uint64_t now)
{
    uint64_t longest = gp_ledger_edge_load(&coro->longest_ticks), open = coro_ledger_open_slice(coro, now);
    return gp_ticks_to_ns(open > longest ? open : longest);
}
