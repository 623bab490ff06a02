// SPDX-License-Identifier: MIT
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/futex.h"
#include "collect/collector.h"
#include "collect/sampler.h"
#include "collect/samples.h"
#include "collect/sampling_signal.h"
#include "collect/thread_off.h"
#include "collect/thread_timers.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "coro/threads.h"
#include "session/budget.h"
#include "session/census_service.h"
#include "session/closing.h"
#include "session/follow.h"
#include "session/recording.h"
#include "session/ring_file.h"
#include "session/rotation.h"
#include "session/session_calls.h"
#include "session/session_file.h"
#include "session/session_flush.h"
#include "session/session_records.h"
#include "session/session_report.h"
#include "session/session_size.h"
#include "session/span_listen.h"
#include "session/writing.h"
#include "settings.h"
#include "signal/activity.h"
#include "signal/slice.h"
#include "signal/wait.h"
#include "trace/span.h"

enum {
    FLUSH_BYTES = 1 << 20,
    WAITS_AT_END = 200, // for the writing thread, where it writes to a pipe
    FILE_WAITS_AT_END = 600,
};

enum ending { ENDING_NOT, ENDING_ASKED, ENDING_EXIT, ENDING_EXEC };

static const gp_sink_t session_sink, finished_sink;
static uint64_t last_flush_ns;
static _Atomic bool started;
static _Atomic bool is_leaving; // of a recording that is over, not everything is taken back yet
static bool was_started, opened;
static bool is_over;                // the last of it has been reported, and the program goes on
static bool is_out;                 // and handed over
static bool is_turning;             // what ends a part is not handed over yet
static bool is_asked, was_switched; // its end was asked for by a command, or any change was
static gp_closing_t finished;       // the last word on a recording that is over
static gp_session_latest_t latest;  // what the latest recording came to
static unsigned frequency;          // of the present one
static _Atomic int ending;
static _Atomic bool flushing; // what there is, is to be written
static int round_ending;      // as they were when the round began
static bool round_flushes;
static _Atomic bool is_sandboxed; // what ends it is a sandbox of the program's
static _Atomic bool closing;      // the last word is to be said
static _Atomic bool is_kept;      // what ended the capture is in the file

static bool wants_waits(void)
{
    return true;
}

static bool wants_threads(void)
{
    return gp_session_recording.header.clock == PROF_CLOCK_WALL;
}

static void write_end(uint32_t reason)
{
    gp_end_record_t *record = gp_writer_add(&gp_session_recording.writer, GP_CHUNK_END, sizeof(*record));
    if (record == NULL)
        return;
    record->time_ns = gp_recording_since(&gp_session_recording, gp_ticks());
    record->reason = reason;
}

// Samples that are missing, and need not be: of an idle thread, or by another timer, there are none.
static gp_closing_t last_word(void)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_session_counters(counters);
    gp_session_count_refused(counters);
    gp_closing_t last = {
        .samples = counters[GP_COUNTER_SAMPLES],
        .lost = gp_losses_of(counters, GP_COUNTER_COUNT),
        .parts = gp_rotation_count(),
        .parts_refused = gp_session_turn_is_refused(),
        .unprofiled = counters[GP_COUNTER_UNPROFILED_CHILDREN],
        .is_sandboxed = atomic_load_explicit(&is_sandboxed, memory_order_acquire),
        .is_whole = is_out && atomic_load_explicit(&is_kept, memory_order_acquire),
    };
    gp_rested_words(counters, gp_recording_since(&gp_session_recording, gp_ticks()), last.rested);
    return last;
}

static void say_last_word(void)
{
    if (!atomic_exchange_explicit(&closing, false, memory_order_acquire))
        return;
    const gp_closing_t last = last_word();
    gp_closing_say(&gp_session_recording, &last);
}

void gp_session_sandboxed(void)
{
    atomic_store_explicit(&is_sandboxed, true, memory_order_release);
}

static uint32_t end_reason(int end)
{
    if (end == ENDING_EXIT && atomic_load_explicit(&is_sandboxed, memory_order_acquire))
        return GP_END_SANDBOX;
    if (end == ENDING_NOT)
        return GP_END_FULL;
    if (end == ENDING_EXEC)
        return GP_END_EXEC;
    if (gp_sampler_has_yielded())
        return GP_END_STOPPED;
    return end == ENDING_ASKED ? GP_END_ASKED : GP_END_EXIT;
}

static void hand_over_last(void)
{
    int waits = gp_session_recording.writer.is_regular ? FILE_WAITS_AT_END : WAITS_AT_END;
    for (int i = 0; gp_writer_is_busy(&gp_session_recording.writer) && i < waits; i++)
        gp_session_let_it_write(); // with a part of the report
    is_out = gp_session_hand_over();
}

// Nothing more is to be reported, or there is nothing to report.
static bool is_done(int end)
{
    if (is_over && !is_out)
        hand_over_last();
    // A child that did nothing has no file, unless it was asked for one.
    return is_over || (!opened && end != ENDING_ASKED && gp_writer_pending(&gp_session_recording.writer) == 0);
}

static void ends_no_more(void)
{
    round_ending = ENDING_NOT;
    round_flushes = false;
    atomic_store_explicit(&flushing, false, memory_order_release);
    atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
}

// What was asked for since the round began is the next one's, where there is anything left to tell.
static void answer_round(void)
{
    if (is_over) {
        ends_no_more();
        return;
    }
    if (round_flushes)
        atomic_store_explicit(&flushing, false, memory_order_release);
    if (round_ending != ENDING_NOT)
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
}

static uint64_t earliest; // ticks

static void note_start(const gp_span_mark_t *mark)
{
    earliest = mark->span.start < earliest ? mark->span.start : earliest;
}

// The next part. A request that is open is in it as a whole: it speaks of times from its beginning on.
static void begin_part(const char *aside, uint64_t now)
{
    uint64_t ticks = earliest = gp_ticks();
    gp_span_each_open(ticks, note_start);
    gp_recording_turn(&gp_session_recording, frequency, earliest);
    gp_session_report_turn();
    gp_writer_turn(&gp_session_recording.writer, aside, &gp_session_recording.header);
    gp_recording_meta(&gp_session_recording);
    gp_recording_labels(&gp_session_recording);
    gp_rotation_begin(now);
}

static void finish_part(uint64_t now)
{
    static char aside[GP_ROTATION_PATH_SIZE];
    hand_over_last();
    is_turning = !is_out;
    if (is_turning)
        return; // the disk is slow: what comes meanwhile is in this part, too
    if (gp_rotation_make_room(&gp_session_recording.writer, aside))
        begin_part(aside, now);
    else
        is_over = true;
}

// What is asked for while a round is on its way is the next one's: this one has taken some of what came before already.
static void round_begins(void)
{
    round_ending = atomic_load_explicit(&ending, memory_order_acquire);
    round_flushes = atomic_load_explicit(&flushing, memory_order_acquire);
}

static void end_of_round(void)
{
    say_last_word();
    gp_ring_file_round();
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    int end = round_ending;
    bool flushes = round_flushes;
    if (end == ENDING_NOT && !flushes && !is_over && now - last_flush_ns < gp_session_flush_every_ns() &&
        gp_writer_pending(&gp_session_recording.writer) < FLUSH_BYTES)
        return;
    if (is_done(end)) {
        answer_round();
        return;
    }
    if (gp_writer_is_busy(&gp_session_recording.writer))
        return; // the disk is slow: records wait where they are
    if (gp_writer_has_failed(&gp_session_recording.writer)) {
        is_over = is_out = end <= ENDING_ASKED;
        answer_round();
        return;
    }
    if (!opened)
        gp_session_open_in_child();
    opened = true;
    if (flushes)
        gp_session_report_all();
    if (is_turning && end == ENDING_NOT) {
        finish_part(now);
        return;
    }
    is_turning = false;
    gp_recording_definitions(&gp_session_recording);
    bool turns = end == ENDING_NOT && !flushes && gp_session_is_time_to_turn(now);
    bool is_last = !turns && (end != ENDING_NOT || gp_session_is_nearly_full());
    gp_session_report(now, turns ? GP_REPORT_TURN : is_last ? GP_REPORT_LAST : GP_REPORT_NEWS);
    if (is_last || turns)
        write_end(turns ? GP_END_TURNED : end_reason(end));
    if (turns)
        finish_part(now);
    else if (is_last)
        hand_over_last();
    else
        is_out = gp_session_hand_over();
    last_flush_ns = now;
    is_over = is_last && end <= ENDING_ASKED;
    if (is_out && flushes)
        atomic_store_explicit(&flushing, false, memory_order_release);
    if (end != ENDING_NOT)
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
}

static void keep_path(void)
{
    const char *path = gp_session_recording.writer.path;
    size_t length = strnlen(path, sizeof(latest.path) - 1);
    memcpy(latest.path, path, length);
    latest.path[length] = '\0';
}

static void keep_latest(int error)
{
    const gp_writer_t *writer = &gp_session_recording.writer;
    latest.state = finished.is_full ? GP_CONTROL_FULL : error != 0 ? GP_CONTROL_FAILED : GP_CONTROL_STOPPED;
    latest.bytes = writer->bytes;
    gp_session_counters(latest.counters);
    keep_path();
}

// The capture is as large as it may be and written, or cannot be written any further: nothing that costs the program
// anything goes on for it.
static void after_round(void)
{
    if (!is_over || !is_out || gp_writer_is_busy(&gp_session_recording.writer))
        return;
    atomic_store_explicit(&is_leaving, true, memory_order_release);
    gp_drain_enter();
    finished = last_word();
    int error = atomic_load_explicit(&gp_session_recording.writer.error, memory_order_relaxed);
    finished.is_whole = true;
    finished.is_full = (error == 0 && !is_asked) || (error == -EFBIG && gp_session_recording.writer.max_bytes != 0);
    keep_latest(error);
    bool is_left = gp_ring_file_end();
    gp_recording_abandon(&gp_session_recording);
    gp_held_close(&gp_session_recording.writer.directory);
    atomic_store_explicit(&gp_session_recording.writer.error, error, memory_order_relaxed);
    atomic_store_explicit(&started, false, memory_order_release);
    atomic_store_explicit(&gp_spawn_wanted, false, memory_order_relaxed);
    atomic_store_explicit(&gp_activity_wanted, false, memory_order_relaxed);
    gp_spans_want(GP_SPANS_CAPTURED, false);
    gp_sink_replace(&session_sink, &finished_sink);
    gp_drain_leave();
    gp_wait_want(-1);
    gp_session_calls_stop();
    gp_sampler_release_patiently(frequency);
    gp_session_rings_leave(is_left);
    atomic_store_explicit(&is_leaving, false, memory_order_release);
}

static void finished_round(void)
{
    gp_ring_file_round();
    if (atomic_exchange_explicit(&closing, false, memory_order_acquire))
        gp_closing_say(&gp_session_recording, &finished);
}

static void put_aside(gp_thread_t *thread)
{
    gp_ring_file_put_aside(thread, &gp_session_recording);
}

// Of a recording that is over while the program goes on.
static const gp_sink_t finished_sink = {.round = finished_round};

static const gp_sink_t session_sink = {
    .wants_waits = wants_waits,
    .wants_threads = wants_threads,
    .round_begins = round_begins,
    .sample = gp_session_take_sample,
    .hog = gp_session_take_hog,
    .delay = gp_session_take_delay,
    .activity = gp_session_take_activity,
    .trace_mark = gp_session_take_trace_mark,
    .span = gp_session_take_span,
    .coro_over = gp_session_take_coro_over,
    .thread_over = gp_session_take_thread,
    .pressed = put_aside,
    .round = end_of_round,
    .after_round = after_round,
};

// A reader of a pipe that stalls may never go on; a disk that is busy does.
static uint64_t ending_limit_ns(void)
{
    return gp_session_recording.writer.is_regular ? 3000000000u : 1000000000u;
}

static void end(int how)
{
    gp_thread_t *self = gp_thread_self;
    if (self != NULL && !atomic_load_explicit(&self->busy, memory_order_relaxed))
        gp_slice_settle_now(self);
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC), waited = 0, limit_ns = ending_limit_ns();
    int late = -ETIMEDOUT;
    atomic_store_explicit(&is_kept, false, memory_order_relaxed);
    atomic_store_explicit(&ending, how, memory_order_release);
    // A round hands the last records over, as soon as those before are written; then they are written, too.
    while (waited < limit_ns && atomic_load_explicit(&started, memory_order_acquire) &&
           atomic_load_explicit(&ending, memory_order_acquire) != ENDING_NOT &&
           gp_collector_sync_within(limit_ns - waited) == 0) {
        waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
        late = gp_writing_wait(&gp_session_recording.writer, waited < limit_ns ? limit_ns - waited : 0);
        waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
    }
    // What is flushed after it, as the program goes on for a while, is another matter.
    bool is_told = atomic_load_explicit(&ending, memory_order_acquire) == ENDING_NOT;
    atomic_store_explicit(&is_kept, is_told && late == 0, memory_order_release);
    if (is_told && late == 0)
        gp_ring_file_unlink();
}

void gp_session_before_exec(void)
{
    if (started)
        end(ENDING_EXEC);
}

void gp_session_ending(void)
{
    if (!was_started)
        return;
    if (started)
        end(ENDING_EXIT);
    if (!was_switched) // the command has said it; and the collector says it, as this may be a handler
        atomic_store_explicit(&closing, true, memory_order_release);
    gp_collector_sync_within(2 * ending_limit_ns());
    gp_census_service_end();
}

void gp_session_before_rest(void)
{
    gp_drain_enter();
    if (atomic_load_explicit(&started, memory_order_relaxed) && !is_over)
        gp_session_report_before_rest();
    gp_drain_leave();
}

void gp_session_wake(void)
{
    gp_futex_wake_all(&gp_session_recording.writer.busy);
}

void gp_session_in_child(void)
{
    atomic_store_explicit(&is_leaving, false, memory_order_relaxed);
    gp_writing_after_fork();
    gp_ring_file_in_child();
    if (started || gp_session_recording.writer.fd >= 0)
        gp_recording_abandon(&gp_session_recording);
    if (!started)
        return;
    is_over = opened = is_turning = false;
    ends_no_more();
    last_flush_ns = 0;
    gp_session_begin_recording(frequency);
    gp_rotation_in_child();
    gp_rotation_begin(gp_clock_ns(CLOCK_MONOTONIC));
    gp_session_report_in_child();
    gp_session_calls_after_fork();
}

static int choose(void)
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
static void take_part(bool is_late)
{
    static bool has_sink;
    if (!has_sink)
        gp_sink_add(&finished_sink);
    has_sink = true;
    gp_drain_enter();
    is_over = is_out = is_turning = false;
    opened = true;
    ends_no_more();
    last_flush_ns = gp_clock_ns(CLOCK_MONOTONIC);
    gp_rotation_begin(last_flush_ns);
    gp_thread_off_note_all();
    if (is_late) {
        gp_session_report_anew();
        gp_ring_file_note(&gp_session_recording);
    }
    was_started = true;
    gp_sink_replace(&finished_sink, &session_sink);
    atomic_store_explicit(&started, true, memory_order_release);
    gp_drain_leave();
}

static int open_and_sample(void)
{
    gp_session_recording.budget_ppm = gp_budget_ppm();
    int error = gp_sampler_acquire_patiently(frequency);
    if (error != 0)
        return error;
    error = gp_session_open_now(frequency);
    if (error != 0)
        gp_sampler_release_patiently(frequency);
    return error;
}

static int start(bool is_late)
{
    int error = choose();
    if (error != 0)
        return error;
    frequency = gp_session_frequency();
    gp_session_flush_set();
    gp_session_rings_make(is_late);
    atomic_store_explicit(&gp_activity_wanted, true, memory_order_relaxed);
    error = open_and_sample();
    if (error != 0) {
        gp_drain_enter();
        gp_ring_file_end();
        gp_drain_leave();
        return error;
    }
    take_part(is_late);
    gp_wait_want(1);
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
    int error = start(false);
    gp_sampler_begin_here();
    gp_session_report_start();
    gp_drain_enter();
    if (error == 0 && !gp_writer_is_busy(&gp_session_recording.writer)) // else that has been said
        gp_ring_file_note(&gp_session_recording);
    gp_drain_leave();
    pthread_sigmask(SIG_SETMASK, &old, NULL); // the interposed one: where it was blocked before, it is no more
    if (error != 0)
        gp_closing_say_failed(error);
    return error;
}

int gp_session_begin(const gp_session_wish_t *wish)
{
    if (atomic_load_explicit(&started, memory_order_acquire))
        return -EALREADY;
    if (atomic_load_explicit(&is_leaving, memory_order_acquire))
        return -EAGAIN;
    if (wish->path[0] == '\0' && gp_setting(GP_SETTING_OUTPUT) == NULL)
        return -EDESTADDRREQ;
    gp_session_set_wish(wish);
    is_asked = false;
    was_switched = true;
    return start(true);
}

// Let rounds come until nothing is left to do, `limit_ns` at most. Returns 0 or -ETIMEDOUT.
static int let_rounds_come(bool (*is_enough)(void), uint64_t limit_ns)
{
    uint64_t begin = gp_clock_ns(CLOCK_MONOTONIC), waited = 0;
    while (!is_enough()) {
        if (waited >= limit_ns || gp_collector_sync_within(limit_ns - waited) != 0)
            return -ETIMEDOUT;
        waited = gp_clock_ns(CLOCK_MONOTONIC) - begin;
        gp_writing_wait(&gp_session_recording.writer, waited < limit_ns ? limit_ns - waited : 0);
        waited = gp_clock_ns(CLOCK_MONOTONIC) - begin;
    }
    return 0;
}

static bool is_finished(void)
{
    int none = ENDING_NOT;
    if (!atomic_load_explicit(&started, memory_order_acquire))
        return !atomic_load_explicit(&is_leaving, memory_order_acquire);
    atomic_compare_exchange_strong_explicit(&ending, &none, ENDING_ASKED, memory_order_acq_rel, memory_order_relaxed);
    return false;
}

int gp_session_finish(uint64_t limit_ns)
{
    if (!atomic_load_explicit(&started, memory_order_acquire))
        return -EALREADY;
    is_asked = was_switched = true;
    return let_rounds_come(is_finished, limit_ns);
}

static bool is_flushed(void)
{
    return !atomic_load_explicit(&flushing, memory_order_acquire);
}

int gp_session_flush(uint64_t limit_ns)
{
    if (!atomic_load_explicit(&started, memory_order_acquire))
        return -EALREADY;
    atomic_store_explicit(&flushing, true, memory_order_release);
    int error = let_rounds_come(is_flushed, limit_ns);
    return error == 0 ? gp_writing_wait(&gp_session_recording.writer, limit_ns) : error;
}

void gp_session_status(gp_session_latest_t *status)
{
    const gp_writer_t *writer = &gp_session_recording.writer;
    const gp_file_header_t *header = &gp_session_recording.header;
    gp_drain_enter();
    if (atomic_load_explicit(&started, memory_order_relaxed)) {
        latest.state = GP_CONTROL_RECORDING;
        if (!gp_writer_is_busy(writer)) // else the writing thread changes it
            latest.bytes = writer->bytes;
        gp_session_counters(latest.counters);
        keep_path();
    }
    latest.start_realtime_ns = header->start_realtime_ns;
    latest.start_ns = header->start_monotonic_ns;
    latest.frequency_hz = header->frequency_hz;
    latest.clock = header->clock;
    *status = latest;
    gp_drain_leave();
}
