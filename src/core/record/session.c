// SPDX-License-Identifier: MIT
#include "record/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/futex.h"
#include "collect/collector.h"
#include "collect/ring_drain.h"
#include "collect/sampler.h"
#include "collect/sampling_signal.h"
#include "collect/thread_off.h"
#include "collect/thread_timers.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "coro/threads.h"
#include "model/own_cost.h"
#include "record/budget.h"
#include "record/census_service.h"
#include "record/closing_line.h"
#include "record/default_rate.h"
#include "record/follow.h"
#include "record/record_state.h"
#include "record/ring_file.h"
#include "record/rotation.h"
#include "record/session_calls.h"
#include "record/session_file.h"
#include "record/session_flush.h"
#include "record/session_records.h"
#include "record/session_report.h"
#include "record/session_size.h"
#include "record/span_listen.h"
#include "record/writing.h"
#include "settings.h"
#include "signal/activity.h"
#include "signal/slice.h"
#include "signal/wait_samples.h"
#include "trace/client_switch.h"
#include "trace/span.h"

static const gp_sink_t session_sink, finished_sink;

static gp_record_t record = {.recording = {.writer = GP_WRITER_INIT}};
static bool was_started;            // there was a recording
static bool is_asked, was_switched; // its end was asked for by a command, or any change was
static gp_closing_line_t finished;  // the last word on one that is over
static gp_session_latest_t latest;  // what the latest one came to
static _Atomic bool closing;        // the last word is to be said
static _Atomic bool is_kept;        // what ended the capture is in the file

static bool session_wants_waits(void)
{
    return true;
}

static bool session_wants_threads(void)
{
    return record.recording.header.clock == PROF_CLOCK_WALL;
}

// Samples that are missing, and need not be: of an idle thread, or by another timer, there are none.
static gp_closing_line_t session_last_word(void)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_session_counters(counters);
    gp_session_count_refused(&record.recording, counters);
    gp_closing_line_t last = {
        .samples = counters[GP_COUNTER_SAMPLES],
        .lost = gp_losses_of(counters, GP_COUNTER_COUNT),
        .parts = gp_rotation_count(),
        .parts_refused = gp_session_turn_is_refused(),
        .unprofiled = counters[GP_COUNTER_UNPROFILED_CHILDREN],
        .is_sandboxed = atomic_load_explicit(&record.is_sandboxed, memory_order_acquire),
        .own_share = gp_session_report_own_share(counters),
        .is_whole = record.is_out && atomic_load_explicit(&is_kept, memory_order_acquire),
    };
    gp_rested_words(counters, gp_recording_since(&record.recording, gp_ticks()), last.rested);
    return last;
}

static void session_say_last_word(void)
{
    if (!atomic_exchange_explicit(&closing, false, memory_order_acquire))
        return;
    const gp_closing_line_t last = session_last_word();
    gp_closing_line_say(&record.recording, &last);
}

void gp_session_sandboxed(void)
{
    atomic_store_explicit(&record.is_sandboxed, true, memory_order_release);
}

static void session_round_begins(void)
{
    gp_record_round_begins(&record);
}

static void session_end_of_round(void)
{
    session_say_last_word();
    gp_ring_file_round();
    if (!atomic_load_explicit(&record.is_sandboxed, memory_order_relaxed))
        gp_clients_look_at_file();
    gp_record_round_ends(&record);
}

static void session_keep_path(void)
{
    const char *path = record.recording.writer.path;
    size_t length = strnlen(path, sizeof(latest.path) - 1);
    memcpy(latest.path, path, length);
    latest.path[length] = '\0';
}

static void session_keep_latest(int error)
{
    const gp_writer_t *writer = &record.recording.writer;
    latest.state = finished.is_full ? GP_CONTROL_FULL : error != 0 ? GP_CONTROL_FAILED : GP_CONTROL_STOPPED;
    latest.bytes = writer->bytes;
    gp_session_counters(latest.counters);
    session_keep_path();
}

// The capture is as large as it may be and written, or cannot be written any further: nothing that costs the program
// anything goes on for it.
static void session_after_round(void)
{
    if (gp_record_state_of(&record) != GP_RECORD_WRITTEN || gp_writer_is_busy(&record.recording.writer))
        return;
    gp_drain_enter();
    finished = session_last_word();
    int error = atomic_load_explicit(&record.recording.writer.error, memory_order_relaxed);
    finished.is_whole = true;
    finished.is_full = (error == 0 && !is_asked) || (error == -EFBIG && record.recording.writer.max_bytes != 0);
    session_keep_latest(error);
    bool is_left = gp_ring_file_end();
    gp_recording_abandon(&record.recording);
    gp_kept_fd_close(&record.recording.writer.directory);
    atomic_store_explicit(&record.recording.writer.error, error, memory_order_relaxed);
    gp_record_set_state(&record, GP_RECORD_LEAVING);
    atomic_store_explicit(&gp_spawn_wanted, false, memory_order_relaxed);
    atomic_store_explicit(&gp_activity_wanted, false, memory_order_relaxed);
    gp_spans_want(GP_SPANS_CAPTURED, false);
    gp_sink_replace(&session_sink, &finished_sink);
    gp_drain_leave();
    gp_wait_samples_want(-1);
    gp_session_calls_stop();
    gp_sampler_release_patiently(gp_default_rate_end());
    gp_session_rings_leave(is_left);
    gp_record_set_state(&record, GP_RECORD_ABSENT);
}

static void session_finished_round(void)
{
    gp_ring_file_round();
    if (atomic_exchange_explicit(&closing, false, memory_order_acquire))
        gp_closing_line_say(&record.recording, &finished);
}

// Sinks have no context: what each takes goes to the one recording.
#define TAKE(name, parameters, ...)                                                                                    \
    static void session_take_##name parameters                                                                         \
    {                                                                                                                  \
        gp_session_take_##name(&record.recording, __VA_ARGS__);                                                        \
    }
TAKE(sample,
     (const gp_sample_t *sample, gp_thread_t *thread, const gp_stack_t *stack, const gp_share_t *shares, size_t count),
     sample, thread, stack, shares, count)
TAKE(hog, (const gp_hog_mark_t *mark, gp_thread_t *thread, const gp_hog_sample_t *samples, size_t count), mark, thread,
     samples, count)
TAKE(delay, (const gp_delay_mark_t *mark, gp_thread_t *thread), mark, thread)
TAKE(activity, (const gp_activity_mark_t *mark, gp_thread_t *thread), mark, thread)
TAKE(trace_mark, (const gp_trace_mark_t *mark), mark)
TAKE(span, (const gp_span_mark_t *mark), mark)
TAKE(coro_over, (prof_coro_t * coro), coro)
TAKE(thread, (gp_thread_t * thread), thread)

static void session_put_aside(gp_thread_t *thread)
{
    gp_ring_file_put_aside(thread, &record.recording);
}

// The sink of a finished recording while the program goes on.
static const gp_sink_t finished_sink = {.round = session_finished_round};

static const gp_sink_t session_sink = {
    .wants_waits = session_wants_waits,
    .wants_threads = session_wants_threads,
    .round_begins = session_round_begins,
    .sample = session_take_sample,
    .hog = session_take_hog,
    .delay = session_take_delay,
    .activity = session_take_activity,
    .trace_mark = session_take_trace_mark,
    .span = session_take_span,
    .coro_over = session_take_coro_over,
    .thread_over = session_take_thread,
    .pressed = session_put_aside,
    .round = session_end_of_round,
    .after_round = session_after_round,
};

// A stalled reader of a pipe may never go on; a busy disk does.
static uint64_t session_ending_limit_ns(void)
{
    return record.recording.writer.is_regular ? 3000000000u : 1000000000u;
}

static void session_end(int how)
{
    gp_thread_t *self = gp_thread_self;
    if (self != NULL && !atomic_load_explicit(&self->busy, memory_order_relaxed))
        gp_slice_settle_now(self);
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC), waited = 0, limit_ns = session_ending_limit_ns();
    int late = -ETIMEDOUT;
    atomic_store_explicit(&is_kept, false, memory_order_relaxed);
    atomic_store_explicit(&record.ending, how, memory_order_release);
    // A round hands the last records over, as soon as those before are written; then they are written, too.
    while (waited < limit_ns && gp_record_is_there(&record) &&
           atomic_load_explicit(&record.ending, memory_order_acquire) != GP_ENDING_NOT &&
           gp_collector_sync_within(limit_ns - waited) == 0) {
        waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
        late = gp_writing_wait(&record.recording.writer, waited < limit_ns ? limit_ns - waited : 0);
        waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
    }
    // Later flushes, as the program goes on for a while, are another matter.
    bool is_told = atomic_load_explicit(&record.ending, memory_order_acquire) == GP_ENDING_NOT;
    atomic_store_explicit(&is_kept, is_told && late == 0, memory_order_release);
    if (is_told && late == 0)
        gp_ring_file_unlink();
}

void gp_session_before_exec(void)
{
    if (gp_record_is_there(&record))
        session_end(GP_ENDING_EXEC);
}

void gp_session_ending(void)
{
    if (!was_started)
        return;
    if (gp_record_is_there(&record))
        session_end(GP_ENDING_EXIT);
    if (!was_switched) // the command has said it; and the collector says it, as this may be a handler
        atomic_store_explicit(&closing, true, memory_order_release);
    gp_collector_sync_within(2 * session_ending_limit_ns());
    gp_census_service_end();
}

static void session_before_rest(void)
{
    gp_drain_enter();
    if (gp_record_goes_on(&record))
        gp_session_report_before_rest(&record.recording);
    gp_drain_leave();
}

void gp_session_wake(void)
{
    gp_futex_wake_all(&record.recording.writer.busy);
}

void gp_session_in_child(void)
{
    bool goes_on = gp_record_is_there(&record);
    gp_writing_after_fork();
    gp_ring_file_in_child();
    if (goes_on || record.recording.writer.fd >= 0)
        gp_recording_abandon(&record.recording);
    gp_record_set_state(&record, goes_on ? GP_RECORD_MEMORY : GP_RECORD_ABSENT);
    if (!goes_on)
        return;
    gp_record_ask_nothing(&record);
    record.last_flush_ns = 0;
    gp_session_begin_recording(&record.recording, record.frequency);
    gp_rotation_in_child();
    gp_rotation_begin(gp_clock_ns(CLOCK_MONOTONIC));
    gp_session_report_in_child();
    gp_session_calls_after_fork();
}

static int session_choose(void)
{
    static bool is_chosen;
    const char *engine = gp_setting(GP_SETTING_ENGINE), *signal_text = gp_setting(GP_SETTING_SIGNAL);
    if (is_chosen)
        return 0;
    if ((engine != NULL && gp_timers_choose_engine(engine) != 0) ||
        (signal_text != NULL && gp_sampling_signal_choose(signal_text) != 0))
        return -EINVAL;
    is_chosen = true;
    return 0;
}

// The file is open: take in what happens from now on.
static void session_take_part(bool is_late)
{
    static bool has_sink;
    if (!has_sink)
        gp_sink_add(&finished_sink);
    has_sink = true;
    gp_drain_enter();
    record.is_out = false;
    gp_record_ask_nothing(&record);
    record.last_flush_ns = gp_clock_ns(CLOCK_MONOTONIC);
    gp_rotation_begin(record.last_flush_ns);
    gp_thread_off_note_all();
    if (is_late) {
        gp_session_report_anew();
        gp_ring_file_note(&record.recording);
    }
    was_started = true;
    gp_sink_replace(&finished_sink, &session_sink);
    gp_record_set_state(&record, GP_RECORD_OPEN);
    gp_drain_leave();
}

static int session_open_and_sample(void)
{
    bool is_chosen = gp_session_frequency_is_chosen() || gp_budget_ppm() != 0;
    record.recording.budget_ppm = is_chosen ? gp_budget_ppm() : GP_DEFAULT_COST_PPM;
    int error = gp_sampler_acquire_patiently(gp_default_rate_first(record.frequency, is_chosen));
    if (error != 0)
        return error;
    gp_budget_begin_recording(record.frequency, is_chosen);
    error = gp_session_open_now(&record.recording, record.frequency);
    if (error != 0)
        gp_sampler_release_patiently(gp_default_rate_end());
    return error;
}

static int session_start(bool is_late)
{
    int error = session_choose();
    if (error != 0)
        return error;
    // Release: partner of the acquire where a rest begins.
    atomic_store_explicit(&gp_budget_before_rest, session_before_rest, memory_order_release);
    record.frequency = gp_session_frequency();
    gp_session_flush_set();
    gp_session_rings_make(&record.recording, is_late);
    atomic_store_explicit(&gp_activity_wanted, true, memory_order_relaxed);
    error = session_open_and_sample();
    if (error != 0) {
        gp_drain_enter();
        gp_ring_file_end();
        gp_drain_leave();
        return error;
    }
    session_take_part(is_late);
    gp_wait_samples_want(1);
    atomic_store_explicit(&gp_spawn_wanted, true, memory_order_relaxed);
    gp_spans_want(GP_SPANS_CAPTURED, true);
    gp_session_calls_start();
    return 0;
}

int gp_session_start(void)
{
    // No sample before all is in place: the time that it takes to get there is not the program's.
    sigset_t signals, old;
    sigfillset(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &old);
    int error = session_start(false);
    gp_sampler_begin_here();
    gp_session_report_start();
    gp_drain_enter();
    if (error == 0 && !gp_writer_is_busy(&record.recording.writer)) // else that has been said
        gp_ring_file_note(&record.recording);
    gp_drain_leave();
    pthread_sigmask(SIG_SETMASK, &old, NULL); // the interposed one: a signal blocked before is so no more
    if (error != 0)
        gp_closing_line_say_failed(error);
    return error;
}

int gp_session_begin(const gp_session_wish_t *wish)
{
    if (gp_record_is_there(&record))
        return -EALREADY;
    if (gp_record_state_of(&record) != GP_RECORD_ABSENT)
        return -EAGAIN;
    if (wish->path[0] == '\0' && gp_setting(GP_SETTING_OUTPUT) == NULL)
        return -EDESTADDRREQ;
    gp_session_set_wish(wish);
    is_asked = false;
    was_switched = true;
    return session_start(true);
}

// Let rounds come until nothing is left to do, `limit_ns` at most. Returns 0 or -ETIMEDOUT.
static int session_let_rounds_come(bool (*is_enough)(void), uint64_t limit_ns)
{
    uint64_t begin = gp_clock_ns(CLOCK_MONOTONIC), waited = 0;
    while (!is_enough()) {
        if (waited >= limit_ns || gp_collector_sync_within(limit_ns - waited) != 0)
            return -ETIMEDOUT;
        waited = gp_clock_ns(CLOCK_MONOTONIC) - begin;
        gp_writing_wait(&record.recording.writer, waited < limit_ns ? limit_ns - waited : 0);
        waited = gp_clock_ns(CLOCK_MONOTONIC) - begin;
    }
    return 0;
}

static bool session_is_finished(void)
{
    int none = GP_ENDING_NOT;
    if (!gp_record_is_there(&record))
        return gp_record_state_of(&record) == GP_RECORD_ABSENT;
    atomic_compare_exchange_strong_explicit(&record.ending, &none, GP_ENDING_ASKED, memory_order_acq_rel,
                                            memory_order_relaxed);
    return false;
}

int gp_session_finish(uint64_t limit_ns)
{
    if (!gp_record_is_there(&record))
        return -EALREADY;
    is_asked = was_switched = true;
    return session_let_rounds_come(session_is_finished, limit_ns);
}

static bool session_is_flushed(void)
{
    return !atomic_load_explicit(&record.flushing, memory_order_acquire);
}

int gp_session_flush(uint64_t limit_ns)
{
    if (!gp_record_is_there(&record))
        return -EALREADY;
    atomic_store_explicit(&record.flushing, true, memory_order_release);
    int error = session_let_rounds_come(session_is_flushed, limit_ns);
    return error == 0 ? gp_writing_wait(&record.recording.writer, limit_ns) : error;
}

void gp_session_status(gp_session_latest_t *status)
{
    const gp_writer_t *writer = &record.recording.writer;
    const gp_file_header_t *header = &record.recording.header;
    gp_drain_enter();
    if (gp_record_is_there(&record)) {
        latest.state = GP_CONTROL_RECORDING;
        if (!gp_writer_is_busy(writer)) // else the writing thread changes it
            latest.bytes = writer->bytes;
        gp_session_counters(latest.counters);
        session_keep_path();
    }
    latest.start_realtime_ns = header->start_realtime_ns;
    latest.start_ns = header->start_monotonic_ns;
    latest.frequency_hz = header->frequency_hz;
    latest.clock = header->clock;
    *status = latest;
    gp_drain_leave();
}

int gp_session_descriptor(void)
{
    return gp_session_file_descriptor(&record.recording);
}
