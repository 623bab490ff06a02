// SPDX-License-Identifier: MIT
#include "record/session_records.h"

#include <string.h>

#include "capture/write/ring_to_records.h"
#include "collect/cpu_time.h"
#include "collect/open_sleep.h"
#include "collect/sleep_scan.h"
#include "collect/thread_off.h"
#include "coro/coro_ledger.h"
#include "coro/coro_name.h"
#include "record/span_listen.h"
#include "signal/activity.h"
#include "signal/ledger_edges.h"
#include "signal/rest.h"
#include "signal/slice.h"
#include "signal/ticks.h"

enum { NAME_EVERY = 5 }; // records of a thread between two looks at its name

static uint64_t last_hog;

static gp_ring_clock_t session_records_ring_clock(const gp_recording_t *recording)
{
    return (gp_ring_clock_t){recording->start_ticks, gp_ticks_scale.mult};
}

// From here on, what the coroutine did is reported under `trace`.
static void session_records_begin_ledger(prof_coro_t *coro, uint64_t id)
{
    if (gp_coro_written(coro)->ledger_id == id)
        return;
    gp_coro_written(coro)->ledger_id = id;
    gp_coro_written(coro)->reported = (gp_ledger_t){0};
    gp_coro_written(coro)->is_whole = gp_coro_written(coro)->is_over = false;
    memcpy(gp_coro_written(coro)->trace, gp_coro_context(coro)->birth_trace, sizeof(gp_coro_written(coro)->trace));
}

// The thread with this as its own stack, ended or not; NULL = none.
static gp_thread_t *session_records_own_thread(prof_coro_t *coro, uint64_t id)
{
    gp_thread_t *own =
        coro->kind == GP_CORO_THREAD ? atomic_load_explicit(&gp_coro_rare(coro)->thread, memory_order_acquire) : NULL;
    return own != NULL && own->root == coro && own->root_id == id ? own : NULL;
}

bool gp_session_read_ledger(prof_coro_t *coro, uint64_t id, uint64_t now, gp_ledger_t *ledger)
{
    gp_thread_t *thread = coro->kind == GP_CORO_THREAD ? gp_sleep_scan_thread_of(coro, id) : NULL;
    if (thread == NULL || !gp_thread_off_read(thread, now, ledger))
        return false;
    session_records_begin_ledger(coro, id);
    gp_coro_written(coro)->is_whole = true;
    return true;
}

bool gp_session_report_ledger(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, const gp_ledger_t *now)
{
    gp_ledger_t more = *now;
    session_records_begin_ledger(coro, id);
    gp_ledger_subtract(&more, &gp_coro_written(coro)->reported);
    if (more.cpu_ns == 0 && more.slice_ns == 0 && more.ready_ns == 0 && more.parked_ns == 0 && more.waiting_ns == 0)
        return true;
    gp_recording_coro(recording, coro, id, 0);
    uint32_t trace = gp_recording_trace(recording, gp_coro_written(coro)->trace);
    gp_ledger_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_LEDGER, sizeof(*record));
    if (record == NULL)
        return false;
    *record = (gp_ledger_record_t){
        .coro_id = id,
        .trace = trace,
        .flags = gp_coro_written(coro)->is_whole ? GP_LEDGER_WHOLE : 0,
        .cpu_ns = more.cpu_ns,
        .switches = more.switches,
        .time_ns = gp_recording_since(recording, gp_ticks()),
        .slice_ns = more.slice_ns,
        .blocked_ns = more.blocked_ns,
        .ready_ns = more.ready_ns,
        .parked_ns = more.parked_ns,
        .waiting_ns = more.waiting_ns,
        .spawned = more.spawned,
        .longest_ns = more.longest_ns,
        .gil_ns = more.gil_ns,
    };
    gp_coro_written(coro)->reported = *now;
    return true;
}

void gp_session_report_last_ledger(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, const gp_ledger_t *last)
{
    if (!gp_session_report_ledger(recording, coro, id, last))
        recording->ledgers_lost++;
}

// The thread is over, and with it its own stack.
static void session_records_report_last_of_thread(gp_recording_t *recording, gp_thread_t *thread)
{
    prof_coro_t *root = thread->root;
    gp_ledger_t ledger;
    session_records_begin_ledger(root, thread->root_id);
    gp_ledger_read(root, thread->end_ticks, &ledger);
    if (!gp_thread_off_apply(thread, &ledger) || !gp_recording_has_coro(recording, root, thread->root_id))
        return;
    gp_coro_written(root)->is_whole = gp_coro_written(root)->is_over = true;
    gp_session_report_last_ledger(recording, root, thread->root_id, &ledger);
}

void gp_session_take_thread(gp_recording_t *recording, gp_thread_t *thread)
{
    uint64_t cpu_ns = atomic_load_explicit(&thread->cpu.final_ns, memory_order_relaxed);
    if (cpu_ns == 0)
        cpu_ns = gp_cpu_time_thread(thread->tid);
    if (cpu_ns != thread->session.cpu_ns) { // idle threads cost nothing
        thread->session.cpu_ns = cpu_ns;
        unsigned age = thread->session.name_age++; // threads get their names early
        if (age < NAME_EVERY || age % NAME_EVERY == 0 || gp_coro_is_named(thread->root))
            gp_recording_name_thread(thread);
        gp_recording_thread(recording, thread, cpu_ns);
    }
    if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_EXITED)
        session_records_report_last_of_thread(recording, thread);
}

void gp_session_report_name(gp_recording_t *recording, prof_coro_t *coro, uint64_t id)
{
    if (gp_coro_written(coro)->ledger_id == id && coro->kind != GP_CORO_THREAD)
        gp_recording_coro(recording, coro, id, 0);
}

// A wait that goes on: the ledger has it, too, so all of it can be taken back there where it turns out to have no end.
static void session_records_take_lasting(gp_recording_t *recording, prof_coro_t *coro, uint64_t id)
{
    gp_ledger_t ledger;
    gp_ledger_read(coro, gp_ticks(), &ledger);
    gp_session_report_ledger(recording, coro, id, &ledger);
}

// Ready time of a call before it began was time in the queue of its pool.
static gp_share_t session_records_share(const gp_sample_t *sample, gp_share_t share)
{
    bool is_queued =
        share.kind == GP_KIND_READY && sample->flags & GP_SAMPLE_NOT_STARTED && gp_coro_rare(sample->coro)->pool != 0;
    return is_queued ? (gp_share_t){GP_KIND_QUEUED, share.weight_ns} : share;
}

void gp_session_take_sample(gp_recording_t *recording, const gp_sample_t *sample, gp_thread_t *thread,
                            const gp_stack_t *stack, const gp_share_t *shares, size_t count)
{
    bool own = thread != NULL && sample->coro == thread->root;
    gp_recording_coro(recording, sample->coro, sample->coro_id, own ? thread->index : 0);
    const gp_ring_clock_t clock = session_records_ring_clock(recording);
    const gp_ring_refs_t refs = {
        .trace = gp_recording_trace(recording, sample->trace),
        .stack = stack->depth > 0 ? gp_recording_stack(recording, stack) : 0,
        .thread = thread != NULL ? thread->index : 0,
    };
    for (size_t i = 0; i < count; i++) {
        gp_sample_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_SAMPLES, sizeof(*record));
        if (record != NULL)
            gp_ring_to_sample(record, sample, session_records_share(sample, shares[i]), &clock, refs);
    }
    if (thread == NULL)
        session_records_take_lasting(recording, sample->coro, sample->coro_id);
}

void gp_session_take_hog(gp_recording_t *recording, const gp_hog_mark_t *mark, gp_thread_t *thread,
                         const gp_hog_sample_t *samples, size_t count)
{
    uint32_t stacks_of[count + 1];
    for (size_t i = 0; i < count; i++)
        stacks_of[i] = gp_recording_stack(recording, &samples[i].stack);
    gp_recording_coro(recording, mark->coro, mark->coro_id, mark->coro == thread->root ? thread->index : 0);
    uint32_t trace = gp_recording_trace(recording, mark->trace);
    gp_hog_record_t *record =
        gp_writer_add(&recording->writer, GP_CHUNK_HOGS, sizeof(*record) + count * sizeof(gp_hog_stack_t));
    if (record == NULL)
        return;
    unsigned slot = thread->session.hog_count++ % GP_HOGS;
    thread->session.hogs[slot].start = mark->start;
    thread->session.hogs[slot].id = record->id = ++last_hog;
    record->coro_id = mark->coro_id;
    record->start_ns = gp_recording_since(recording, mark->start);
    record->duration_ns = gp_ticks_to_ns(mark->end - mark->start);
    record->trace = trace;
    record->thread = thread->index;
    record->stack_count = (uint32_t)count;
    gp_hog_stack_t *out = (gp_hog_stack_t *)(void *)(record + 1);
    for (size_t i = 0; i < count; i++)
        out[i] = (gp_hog_stack_t){.stack_id = stacks_of[i], .weight_ns = samples[i].weight_ns};
}

static uint64_t session_records_hog_id(const gp_thread_t *thread, uint64_t start)
{
    for (unsigned i = 0; i < GP_HOGS; i++)
        if (thread->session.hogs[i].start == start)
            return thread->session.hogs[i].id;
    return 0;
}

void gp_session_take_delay(gp_recording_t *recording, const gp_delay_mark_t *mark, gp_thread_t *thread)
{
    uint64_t hog = session_records_hog_id(thread, mark->hog_start);
    if (hog == 0)
        return;
    gp_recording_coro(recording, mark->coro, mark->coro_id, 0);
    uint32_t trace = gp_recording_trace(recording, mark->trace);
    gp_delay_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_DELAYS, sizeof(*record));
    if (record == NULL)
        return;
    record->hog_id = hog;
    record->coro_id = mark->coro_id;
    record->delay_ns = gp_ticks_to_ns(mark->delay_ticks);
    uint64_t unseen_us = gp_ticks_to_ns(mark->unseen_ticks) / 1000;
    record->unseen_us = unseen_us < UINT32_MAX ? (uint32_t)unseen_us : UINT32_MAX;
    record->trace = trace;
}

// The thread's own clock tells of an open slice, as far as it was not settled.
static void session_records_set_open_times(gp_activity_record_t *record, const gp_activity_mark_t *mark)
{
    uint64_t off_ns = mark->off_ns, blocked_ns = mark->blocked_ns;
    uint64_t open_ns = gp_ticks_to_ns(mark->left - mark->settled);
    if (open_ns > GP_SLICE_LONG_NS) {
        gp_thread_t *thread = gp_sleep_scan_thread_of(mark->coro, mark->coro_id);
        prof_coro_t *current = NULL;
        uint64_t used_ns = thread != NULL ? gp_slice_open_ns(thread, &current) : 0;
        if (current != mark->coro)
            return;
        off_ns += open_ns > used_ns ? open_ns - used_ns : 0;
        blocked_ns += gp_open_sleep_ns(thread, mark->coro, mark->left);
    }
    gp_activity_set_times(record, off_ns, blocked_ns, mark->gil_ns);
}

static void session_records_write_activity(gp_recording_t *recording, const gp_activity_mark_t *mark,
                                           gp_thread_t *thread, enum gp_chunk_type type)
{
    gp_recording_coro(recording, mark->coro, mark->coro_id,
                      thread != NULL && mark->coro == thread->root ? thread->index : 0);
    const gp_ring_clock_t clock = session_records_ring_clock(recording);
    uint32_t trace = gp_recording_trace(recording, mark->trace);
    gp_activity_record_t *record = gp_writer_add(&recording->writer, type, sizeof(*record));
    if (record == NULL)
        return;
    gp_ring_to_activity(record, mark, &clock, trace);
    if (mark->left > mark->settled)
        session_records_set_open_times(record, mark);
}

void gp_session_take_activity(gp_recording_t *recording, const gp_activity_mark_t *mark, gp_thread_t *thread)
{
    session_records_write_activity(recording, mark, thread, GP_CHUNK_ACTIVITIES);
}

void gp_session_take_open_activity(gp_recording_t *recording, const gp_activity_mark_t *mark)
{
    session_records_write_activity(recording, mark, NULL, GP_CHUNK_OPEN_ACTIVITIES);
}

void gp_session_take_last_activity(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, uint64_t now)
{
    gp_activity_mark_t mark;
    if (gp_activity_last(coro, id, now, &mark))
        gp_session_take_activity(recording, &mark, NULL);
}

void gp_session_take_trace_mark(gp_recording_t *recording, const gp_trace_mark_t *mark)
{
    gp_ledger_t ledger = mark->ledger;
    gp_thread_t *thread = session_records_own_thread(mark->coro, mark->coro_id);
    session_records_begin_ledger(mark->coro, mark->coro_id);
    if (thread != NULL && gp_thread_off_apply(thread, &ledger))
        gp_coro_written(mark->coro)->is_whole = true;
    gp_session_report_last_ledger(recording, mark->coro, mark->coro_id, &ledger);
    memcpy(gp_coro_written(mark->coro)->trace, mark->trace, sizeof(mark->trace));
}

static void session_records_write_span(gp_recording_t *recording, const gp_span_mark_t *mark, enum gp_chunk_type type)
{
    gp_recording_coro(recording, mark->coro, mark->span.coro_id, 0);
    const gp_ring_clock_t clock = session_records_ring_clock(recording);
    const gp_ring_refs_t refs = {.trace = gp_recording_trace(recording, mark->span.trace),
                                 .stack = gp_recording_site(recording, mark->span.site)};
    gp_span_record_t *record = gp_writer_add(&recording->writer, type, sizeof(*record) + gp_ring_span_text_len(mark));
    if (record != NULL)
        gp_ring_to_span(record, mark, &clock, refs);
}

void gp_session_take_span(gp_recording_t *recording, const gp_span_mark_t *mark)
{
    session_records_write_span(recording, mark, GP_CHUNK_SPANS);
}

void gp_session_take_open_span(gp_recording_t *recording, const gp_span_mark_t *mark)
{
    session_records_write_span(recording, mark, GP_CHUNK_OPEN_SPANS);
}

// Did the coroutine live only while recording rested? Then nothing else is known of it.
static bool session_records_is_unknown(const gp_ledger_t *ledger)
{
    return (ledger->switches | ledger->slice_ns | ledger->cpu_ns | ledger->ready_ns | ledger->parked_ns |
            ledger->waiting_ns) == 0;
}

void gp_session_take_coro_over(gp_recording_t *recording, prof_coro_t *coro)
{
    gp_ledger_t ledger;
    uint64_t id = gp_ledger_edge_load(&coro->final_id), ticks = gp_ledger_edge_load(&coro->final_ticks);
    gp_span_tell_coro_over(coro);
    gp_ledger_read(coro, ticks, &ledger);
    if (session_records_is_unknown(&ledger) && gp_rest_overlaps(coro->birth_ticks))
        return;
    gp_session_report_name(recording, coro, id);
    if (gp_coro_written(coro)->ledger_id != id || !gp_coro_written(coro)->is_over)
        gp_session_report_last_ledger(recording, coro, id, &ledger);
    gp_session_take_last_activity(recording, coro, id, ticks);
}
