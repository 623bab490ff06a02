// SPDX-License-Identifier: MIT
#include "record/open_requests.h"

#include <string.h>
#include <time.h>

#include "collect/waiting_stack.h"
#include "coro/coro_ledger.h"
#include "coro/threads.h"
#include "record/session_records.h"
#include "record/session_report.h"
#include "signal/activity.h"
#include "signal/ledger_edges.h"
#include "trace/span.h"

enum {
    SHARE = 100,            // spans, and coroutines, take at most 1/100 of the collector's time
    TRACE_BITS = 12,        // of a trace's number here
    LASTING_NS = 200000000, // of a span: coroutines are looked at for such only
    WAIT_NS = 5000000,      // of a wait that is sampled before its end,
    WAIT_PART = 4,          // or this part of the wait so far
    WALKS_NS = 20000000,    // for these samples at a time: rings fill meanwhile
};

static uint64_t next_ns, next_coros_ns;         // CLOCK_MONOTONIC
static uint64_t looks, looked, least;           // ticks: the present look, the one before; the least age of a span
static uint64_t walks_until_ns;                 // CLOCK_MONOTONIC
static bool is_asked, any_wanted, is_cut;       // not all waits were sampled
static uint64_t wanted[(1 << TRACE_BITS) / 64]; // traces, a bit each; another's may have the same

// --- which

static uint32_t open_requests_number_of(const uint64_t trace[2])
{
    uint64_t mixed = (trace[0] ^ (trace[1] << 32 | trace[1] >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> (64 - TRACE_BITS));
}

static bool open_requests_is_wanted(prof_coro_t *coro)
{
    uint64_t trace[2];
    gp_waiting_stack_trace(coro, trace);
    uint32_t number = open_requests_number_of(trace);
    return (trace[0] | trace[1]) != 0 && (wanted[number / 64] >> (number % 64) & 1);
}

// Four steps from each power of two to the next.
static uint64_t open_requests_step_of(uint64_t age)
{
    unsigned exponent = 63 - (unsigned)__builtin_clzll(age | 4);
    return exponent * 4 + (age >> (exponent - 2) & 3);
}

static bool open_requests_is_due(const gp_span_t *span)
{
    uint64_t age = looks > span->start ? looks - span->start : 0;
    uint64_t age_then = looked > span->start ? looked - span->start : 0;
    return age >= least && (age_then < least || open_requests_step_of(age) != open_requests_step_of(age_then));
}

static void open_requests_want_coros(void *unused, const gp_span_mark_t *mark)
{
    (void)unused;
    const gp_span_t *span = &mark->span;
    bool lasts = looks > span->start && looks - span->start >= gp_ticks_from_ns(LASTING_NS);
    if (!lasts || (span->trace[0] | span->trace[1]) == 0 || !open_requests_is_due(span))
        return;
    uint32_t number = open_requests_number_of(span->trace);
    wanted[number / 64] |= UINT64_C(1) << (number % 64);
    any_wanted = true;
}

// --- what

// Before the moment up to which spans are written: a path looks for the stack of a wait within the wait.
static void open_requests_take_wait(prof_coro_t *coro, void *unused)
{
    (void)unused;
    if (!open_requests_is_wanted(coro))
        return;
    is_cut = is_cut || gp_clock_ns(CLOCK_MONOTONIC) > walks_until_ns;
    if (is_cut || gp_waiting_stack_is_forsaken(coro, true))
        return;
    uint64_t now = gp_ticks(), since = gp_ledger_edge_load(&coro->since), least_wait = gp_ticks_from_ns(WAIT_NS);
    uint64_t part = now > since ? (now - since) / WAIT_PART : 0;
    gp_waiting_stack_take(coro, part > least_wait ? part : least_wait);
}

static void open_requests_take_sleeps(gp_recording_t *recording)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_acquire);
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE && coro != NULL &&
            open_requests_is_wanted(coro))
            gp_session_report_sleep(recording, thread, true);
    }
}

static void open_requests_take_span(void *recording, const gp_span_mark_t *mark)
{
    if (open_requests_is_due(&mark->span))
        gp_session_take_open_span(recording, mark);
}

// A slice is in the ledger already (session_report.h).
static void open_requests_report_wait(gp_recording_t *recording, const gp_activity_mark_t *mark)
{
    gp_ledger_t ledger;
    gp_ledger_read(mark->coro, gp_ticks(), &ledger);
    if (mark->is_waiting && atomic_load_explicit(&mark->coro->id, memory_order_acquire) == mark->coro_id)
        gp_session_report_ledger(recording, mark->coro, mark->coro_id, &ledger);
}

typedef struct upto {
    gp_recording_t *recording;
    uint64_t ticks;
} upto_t;

static void open_requests_take_activity(prof_coro_t *coro, void *argument)
{
    const upto_t *upto = argument;
    gp_recording_t *recording = upto->recording;
    gp_activity_mark_t mark;
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire);
    if (id == 0 || !open_requests_is_wanted(coro) ||
        (coro->kind == GP_CORO_THREAD && !gp_recording_has_coro(recording, coro, id)))
        return; // a thread's own stack is first written with its thread
    // All up to one moment, where none of them was switched since: a child that goes on is what its spawner waits for.
    if (!gp_activity_open(coro, id, upto->ticks, &mark) && !gp_activity_open(coro, id, gp_ticks(), &mark))
        return;
    gp_session_take_open_activity(recording, &mark);
    open_requests_report_wait(recording, &mark);
}

// Returns up to which moment. A wish stays until there is time for it.
static uint64_t open_requests_take_spans(gp_recording_t *recording)
{
    uint64_t ticks = gp_ticks(), begun_ns = gp_clock_ns(CLOCK_MONOTONIC);
    gp_span_each_open(ticks, open_requests_take_span, recording);
    looked = looks;
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - begun_ns, least_ns = gp_ticks_to_ns(least);
    next_ns = begun_ns + (took * SHARE > least_ns ? took * SHARE : least_ns);
    return ticks;
}

void gp_session_open_report(gp_recording_t *recording, uint64_t now, uint64_t least_ns, gp_session_scan_t *scan)
{
    if (now < next_ns)
        return;
    looks = gp_ticks();
    least = gp_ticks_from_ns(least_ns);
    gp_span_each_open(looks, open_requests_want_coros, NULL);
    if (!any_wanted || now < next_coros_ns) {
        open_requests_take_spans(recording);
        return;
    }
    walks_until_ns = is_asked ? UINT64_MAX : gp_clock_ns(CLOCK_MONOTONIC) + WALKS_NS;
    is_asked = is_cut = false;
    open_requests_take_sleeps(recording);
    scan(recording, open_requests_take_wait, NULL);
    uint64_t before_ns = gp_clock_ns(CLOCK_MONOTONIC);
    upto_t upto = {recording, open_requests_take_spans(recording)};
    uint64_t after_ns = gp_clock_ns(CLOCK_MONOTONIC);
    scan(recording, open_requests_take_activity, &upto);
    next_coros_ns = now + (gp_clock_ns(CLOCK_MONOTONIC) - after_ns + before_ns - now) * SHARE;
    if (is_cut)
        return; // the others have their turn the next time
    any_wanted = false;
    memset(wanted, 0, sizeof(wanted));
}

void gp_session_open_report_all(bool whatever_it_costs)
{
    next_ns = next_coros_ns = looked = 0;
    is_asked = whatever_it_costs;
}
