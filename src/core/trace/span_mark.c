// SPDX-License-Identifier: MIT
#include "trace/span_mark.h"

#include <string.h>

#include "coro/coro_ledger.h"
#include "signal/handler.h"
#include "signal/ledger_edges.h"
#include "signal/rest.h"
#include "signal/slice.h"
#include "signal/slice_switch.h"

uint64_t gp_span_edge_now(void)
{
    gp_thread_t *thread = gp_thread_self;
    uint64_t now = gp_ticks();
    bool is_recorded = __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED);
    if (thread == NULL || !is_recorded || gp_slice_is_settled(thread, now, gp_slice_long_ticks))
        return now;
    return gp_slice_settle_open(thread, now);
}

static inline bool span_mark_runs(prof_coro_t *coro)
{
    return atomic_load_explicit(&coro->running, memory_order_relaxed) != 0 && gp_ledger_edge_is_current(coro);
}

static void span_mark_read_times(prof_coro_t *coro, uint64_t now, gp_ledger_t *times)
{
    gp_ledger_read(coro, now, times);
    if (span_mark_runs(coro))
        times->cpu_ns = gp_ledger_edge_cpu_ns(coro, now);
}

void gp_span_mark_begin(gp_span_slot_t *slot)
{
    slot->has_words = span_mark_runs(slot->coro);
    if (slot->has_words)
        gp_ledger_read_words(slot->coro, &slot->words);
    else
        span_mark_read_times(slot->coro, slot->begun, &slot->times);
}

static uint64_t span_mark_not_below(uint64_t now, uint64_t before)
{
    return (int64_t)(now - before) > 0 ? now - before : 0;
}

static void span_mark_subtract(gp_ledger_t *now, const gp_ledger_t *before)
{
    now->cpu_ns = span_mark_not_below(now->cpu_ns, before->cpu_ns);
    now->blocked_ns = span_mark_not_below(now->blocked_ns, before->blocked_ns);
    now->gil_ns = span_mark_not_below(now->gil_ns, before->gil_ns);
    now->lock_ns = span_mark_not_below(now->lock_ns, before->lock_ns);
    now->slice_ns = span_mark_not_below(now->slice_ns, before->slice_ns);
    now->ready_ns = span_mark_not_below(now->ready_ns, before->ready_ns);
    now->parked_ns = span_mark_not_below(now->parked_ns, before->parked_ns);
    now->waiting_ns = span_mark_not_below(now->waiting_ns, before->waiting_ns);
    now->switches = span_mark_not_below(now->switches, before->switches);
    if (now->cpu_ns > now->slice_ns)
        now->cpu_ns = now->slice_ns;
}

// The times of a span that began and ends in one slice: nothing waited. Returns false where it did not.
static bool span_mark_times_in_slice(const gp_span_slot_t *slot, uint64_t now, gp_ledger_t *times)
{
    gp_ledger_words_t words;
    if (!slot->has_words || !span_mark_runs(slot->coro))
        return false;
    gp_ledger_read_words(slot->coro, &words);
    if (!gp_ledger_is_one_slice(&slot->words, &words))
        return false;
    uint64_t slice_ns = gp_ticks_to_ns(span_mark_not_below(now, slot->begun));
    times->slice_ns = slice_ns + span_mark_not_below(words.polled_slice_ns, slot->words.polled_slice_ns);
    times->cpu_ns = span_mark_not_below(slice_ns, words.off_ns - slot->words.off_ns);
    times->blocked_ns = span_mark_not_below(words.blocked_ns, slot->words.blocked_ns);
    times->gil_ns = span_mark_not_below(words.gil_ns, slot->words.gil_ns);
    times->lock_ns = span_mark_not_below(words.lock_ns, slot->words.lock_ns);
    if (times->cpu_ns > times->slice_ns)
        times->cpu_ns = times->slice_ns;
    return true;
}

// A record of a span has no room for it: there it is sleep.
static void span_mark_join_locks(gp_ledger_t *times)
{
    uint64_t waited_ns = times->gil_ns + times->lock_ns;
    if (waited_ns > times->blocked_ns)
        times->blocked_ns = waited_ns;
    times->gil_ns = times->lock_ns = 0;
}

static void span_mark_times_of(const gp_span_slot_t *slot, uint64_t now, gp_ledger_t *times)
{
    gp_ledger_t before;
    if (span_mark_times_in_slice(slot, now, times))
        return;
    if (slot->has_words)
        gp_ledger_of_words(slot->coro, &slot->words, slot->begun, &before);
    else
        before = slot->times;
    span_mark_read_times(slot->coro, now, times);
    span_mark_subtract(times, &before);
}

static bool span_mark_is_nothing(const gp_ledger_t *times)
{
    return (times->slice_ns | times->ready_ns | times->parked_ns | times->waiting_ns) == 0;
}

bool gp_span_is_known(const gp_span_slot_t *slot)
{
    uint64_t id = atomic_load_explicit(&slot->coro->id, memory_order_relaxed);
    return id == slot->span.coro_id || (id == 0 && gp_ledger_edge_load(&slot->coro->final_id) == slot->span.coro_id);
}

// Within each of its callers, as nearly all that an end of a span does is in here.
__attribute__((always_inline)) static inline void span_mark_fill(gp_span_mark_t *mark, const gp_span_slot_t *slot,
                                                                 uint64_t now)
{
    gp_span_t *span = &mark->span;
    mark->coro = slot->coro;
    mark->field_count = slot->field_count;
    *span = slot->span; // without times, and what else the end adds
    span->end = now;
    span->flags = atomic_load_explicit(&slot->flags, memory_order_relaxed);
    if (gp_rest_overlaps(slot->span.start))
        span->flags |= GP_SPAN_RESTED;
    if (!(span->flags & GP_SPAN_NO_TIMES) && gp_span_is_known(slot)) {
        span_mark_times_of(slot, now, &span->times);
        span_mark_join_locks(&span->times);
        if (span->flags & GP_SPAN_RESTED && span_mark_is_nothing(&span->times)) // a rest is around it
            span->flags |= GP_SPAN_NO_TIMES;
    } else {
        span->flags |= GP_SPAN_NO_TIMES;
    }
}

void gp_span_mark_fill(gp_span_mark_t *mark, const gp_span_slot_t *slot, uint64_t now)
{
    span_mark_fill(mark, slot, now);
}

// By words, as most are short: both have room for whole ones.
static void span_mark_copy_text(char *to, const char *from, size_t len)
{
    enum { SHORT = 64 };
    if (len > SHORT) {
        memcpy(to, from, len);
        return;
    }
    for (size_t i = 0; i < len; i += sizeof(uint64_t))
        memcpy(to + i, from + i, sizeof(uint64_t));
}

void gp_span_mark_send(const gp_span_slot_t *slot, prof_coro_t *coro, unsigned more_flags, uint64_t now)
{
    gp_thread_t *thread = gp_thread_self;
    if (!gp_spans_are_wanted(GP_SPANS_CAPTURED | GP_SPANS_HEARD))
        return;
    uint16_t text_len = atomic_load_explicit(&slot->text_len, memory_order_acquire);
    uint32_t bytes = ((uint32_t)sizeof(gp_span_mark_t) + text_len + 7) & ~7u;
    gp_span_mark_t *mark = thread != NULL ? gp_ring_reserve(&thread->ring, bytes) : NULL;
    if (mark == NULL) {
        if (thread != NULL)
            gp_thread_count(thread, GP_COUNTER_LOST_SPANS);
        return;
    }
    span_mark_fill(mark, slot, now);
    mark->span.flags = (uint16_t)(mark->span.flags | more_flags);
    if (coro != NULL)
        mark->span.end_coro_id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    if (coro == NULL || !gp_span_is_own(slot, coro)) { // another thread runs it now, perhaps
        mark->span.flags |= GP_SPAN_NO_TIMES;
        mark->span.times = (gp_ledger_t){0};
    }
    mark->fields_len = (uint16_t)(text_len - slot->span.name_len);
    span_mark_copy_text(mark->text, slot->text, text_len);
    gp_thread_commit(thread, mark, GP_RING_SPAN);
    if (gp_ring_is_pressed(&thread->ring))
        gp_handler_kick();
}
