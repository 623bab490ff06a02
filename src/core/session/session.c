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
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "model/size_limit.h"
#include "session/census_service.h"
#include "session/closing.h"
#include "session/follow.h"
#include "session/recording.h"
#include "session/session_calls.h"
#include "session/session_records.h"
#include "session/session_report.h"
#include "session/span_listen.h"
#include "session/writing.h"
#include "settings.h"
#include "signal/activity.h"
#include "signal/slice.h"
#include "signal/wait.h"
#include "trace/span.h"

enum {
    FLUSH_NS = 200000000, // at most this much is lost when the process is killed
    FLUSH_BYTES = 1 << 20,
    ENDING_LIMIT_NS = 1000000000,
    WAITS_AT_END = 200, // for the writing thread
    LAST_BYTES = 4096,  // of what is written at the end; and for each live coroutine:
    LAST_CORO_BYTES = 64,
    KNOWN_BYTES = 256 << 10, // of records after which it is known how small they become in the file
};

// Traces and stacks have numbers of 32 bits: after days of 10,000 traces a second there are only as many left as two
// flushes may need.
#define LAST_NUMBER (UINT32_MAX - (1u << 22))

enum ending { ENDING_NOT, ENDING_EXIT, ENDING_EXEC };

static const gp_sink_t session_sink, finished_sink;
static uint64_t last_flush_ns;
static _Atomic bool started;
static bool was_started, opened;
static bool is_over;          // the last of it has been handed over, and the program goes on
static gp_closing_t finished; // the last word on a recording that is over
static _Atomic int ending;
static _Atomic bool closing; // the last word is to be said

static bool wants_waits(void)
{
    return true;
}

static void write_end(uint32_t reason)
{
    gp_end_record_t *record = gp_writer_add(&gp_session_recording.writer, GP_CHUNK_END, sizeof(*record));
    if (record == NULL)
        return;
    record->time_ns = gp_recording_since(&gp_session_recording, gp_ticks());
    record->reason = reason;
}

static bool find_path(char *path, size_t size)
{
    const char *wanted = gp_setting(GP_SETTING_OUTPUT), *limit = gp_setting(GP_SETTING_MAX_SIZE);
    if (limit == NULL || !gp_size_limit_parse(limit, &gp_session_recording.writer.max_bytes))
        gp_session_recording.writer.max_bytes = 0;
    bool found = gp_recording_path(wanted, path, size);
    gp_session_recording.writer.has_made_name = found && strcmp(path, wanted) != 0;
    return found;
}

// Of a forked child: the writing thread opens it, which may take as long as the file system pleases.
static void open_later(void)
{
    char path[4096];
    opened = true;
    if (find_path(path, sizeof(path)))
        gp_writer_open_later(&gp_session_recording.writer, path, &gp_session_recording.header);
    gp_recording_meta(&gp_session_recording);
}

static int open_now(void)
{
    char path[4096];
    opened = true;
    int error = find_path(path, sizeof(path))
                    ? gp_writer_open(&gp_session_recording.writer, path, &gp_session_recording.header)
                    : -ENAMETOOLONG;
    if (error == 0)
        gp_recording_meta(&gp_session_recording);
    return error;
}

// Samples that are missing, and need not be: of an idle thread, or by another timer, there are none.
static gp_closing_t last_word(void)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_collector_counters(counters);
    gp_samples_leave_late(counters);
    bool is_whole = atomic_load_explicit(&ending, memory_order_relaxed) == ENDING_NOT;
    return (gp_closing_t){
        .samples = counters[GP_COUNTER_SAMPLES],
        .lost = counters[GP_COUNTER_DROP_RING_FULL] + counters[GP_COUNTER_DROP_REENTERED] +
                counters[GP_COUNTER_DROP_NO_THREAD] + gp_session_recording.writer.refused[GP_CHUNK_SAMPLES],
        .unprofiled = counters[GP_COUNTER_UNPROFILED_CHILDREN],
        .is_whole = is_whole && !gp_writer_is_busy(&gp_session_recording.writer),
    };
}

static void say_last_word(void)
{
    if (!atomic_exchange_explicit(&closing, false, memory_order_acquire))
        return;
    const gp_closing_t last = last_word();
    gp_closing_say(&gp_session_recording, &last);
}

// Is there just room, in the file or among the numbers, for what is written at the end? The writer itself sees to it
// that the file is never larger.
static bool is_nearly_full(void)
{
    const gp_writer_t *writer = &gp_session_recording.writer;
    uint64_t pending = gp_writer_pending(writer), packed = pending / 4;
    if (gp_session_handed_over_bytes() > KNOWN_BYTES && 2 * writer->bytes < gp_session_handed_over_bytes() / 2)
        packed = (uint64_t)((unsigned __int128)pending * 2 * writer->bytes / gp_session_handed_over_bytes());
    uint64_t rest = packed + LAST_BYTES + gp_session_live_coros() * LAST_CORO_BYTES;
    uint32_t numbers = gp_session_recording.traces.last > gp_session_recording.stacks.last
                           ? gp_session_recording.traces.last
                           : gp_session_recording.stacks.last;
    return numbers > LAST_NUMBER || (writer->max_bytes != 0 && writer->bytes + rest > writer->max_bytes);
}

static uint32_t end_reason(int end)
{
    if (end == ENDING_NOT)
        return GP_END_FULL;
    return end == ENDING_EXEC ? GP_END_EXEC : gp_sampler_has_yielded() ? GP_END_STOPPED : GP_END_EXIT;
}

static void end_of_round(void)
{
    say_last_word();
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    int end = atomic_load_explicit(&ending, memory_order_acquire);
    if (end == ENDING_NOT && now - last_flush_ns < FLUSH_NS &&
        gp_writer_pending(&gp_session_recording.writer) < FLUSH_BYTES)
        return;
    if (is_over ||
        (!opened && gp_writer_pending(&gp_session_recording.writer) == 0)) { // a child that did nothing has no file
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
        return;
    }
    if (gp_writer_is_busy(&gp_session_recording.writer))
        return; // the disk is slow: records wait where they are
    if (gp_writer_has_failed(&gp_session_recording.writer)) {
        is_over = end == ENDING_NOT;
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
        return;
    }
    if (!opened)
        open_later();
    gp_recording_definitions(&gp_session_recording);
    bool is_last = end != ENDING_NOT || is_nearly_full();
    gp_session_report(now, is_last);
    if (is_last)
        write_end(end_reason(end));
    for (int i = 0; is_last && gp_writer_is_busy(&gp_session_recording.writer) && i < WAITS_AT_END; i++)
        gp_session_let_it_write(); // with a part of the report
    bool is_handed_over = gp_session_hand_over();
    last_flush_ns = now;
    is_over = is_last && is_handed_over && end == ENDING_NOT;
    if (end != ENDING_NOT)
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
}

// The capture is as large as it may be and written, or cannot be written any further: nothing that costs the program
// anything goes on for it.
static void after_round(void)
{
    if (!is_over || gp_writer_is_busy(&gp_session_recording.writer))
        return;
    gp_drain_enter();
    finished = last_word();
    int error = atomic_load_explicit(&gp_session_recording.writer.error, memory_order_relaxed);
    finished.is_whole = true;
    finished.is_full = error == 0 || (error == -EFBIG && gp_session_recording.writer.max_bytes != 0);
    unsigned hz = gp_session_recording.header.frequency_hz;
    gp_recording_abandon(&gp_session_recording);
    atomic_store_explicit(&gp_session_recording.writer.error, error, memory_order_relaxed);
    atomic_store_explicit(&started, false, memory_order_release);
    atomic_store_explicit(&gp_spawn_wanted, false, memory_order_relaxed);
    atomic_store_explicit(&gp_activity_wanted, false, memory_order_relaxed);
    gp_spans_want(GP_SPANS_CAPTURED, false);
    gp_sink_replace(&session_sink, &finished_sink);
    gp_drain_leave();
    gp_wait_want(-1);
    gp_session_calls_stop();
    gp_sampler_release(hz);
}

static void finished_round(void)
{
    if (atomic_exchange_explicit(&closing, false, memory_order_acquire))
        gp_closing_say(&gp_session_recording, &finished);
}

// Of a recording that is over while the program goes on.
static const gp_sink_t finished_sink = {.round = finished_round};

static const gp_sink_t session_sink = {
    .wants_waits = wants_waits,
    .sample = gp_session_take_sample,
    .hog = gp_session_take_hog,
    .delay = gp_session_take_delay,
    .activity = gp_session_take_activity,
    .trace_mark = gp_session_take_trace_mark,
    .span = gp_session_take_span,
    .coro_over = gp_session_take_coro_over,
    .thread_over = gp_session_take_thread,
    .round = end_of_round,
    .after_round = after_round,
};

static void end(int how)
{
    gp_thread_t *self = gp_thread_self;
    if (self != NULL && !atomic_load_explicit(&self->busy, memory_order_relaxed))
        gp_slice_settle_now(self);
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC), waited = 0;
    atomic_store_explicit(&ending, how, memory_order_release);
    // A round hands the last records over, as soon as those before are written; then they are written, too.
    while (waited < ENDING_LIMIT_NS && atomic_load_explicit(&started, memory_order_acquire) &&
           atomic_load_explicit(&ending, memory_order_acquire) != ENDING_NOT &&
           gp_collector_sync_within(ENDING_LIMIT_NS - waited) == 0) {
        waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
        gp_writing_wait(&gp_session_recording.writer, waited < ENDING_LIMIT_NS ? ENDING_LIMIT_NS - waited : 0);
        waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
    }
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
    atomic_store_explicit(&closing, true, memory_order_release); // the collector says it: this may be a handler
    gp_collector_sync_within(2 * (uint64_t)ENDING_LIMIT_NS);
    gp_census_service_end();
}

bool gp_session_writes(void)
{
    return gp_writing_runs();
}

void gp_session_wake(void)
{
    gp_futex_wake_all(&gp_session_recording.writer.busy);
}

static void forget_parents(prof_coro_t *coro, void *unused)
{
    (void)unused;
    // What it has done so far is in the parent's capture.
    coro->session.written_id = 0;
    coro->session.ledger_id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    gp_ledger_read(coro, gp_ticks(), &coro->session.reported);
}

void gp_session_in_child(void)
{
    if (!started)
        return;
    unsigned hz = gp_session_recording.header.frequency_hz;
    gp_recording_abandon(&gp_session_recording);
    gp_writing_after_fork();
    is_over = false;
    gp_session_report_in_child();
    atomic_store_explicit(&gp_spawn_lost, 0, memory_order_relaxed);
    opened = false;
    last_flush_ns = 0;
    gp_recording_begin(&gp_session_recording, hz);
    gp_coro_each(forget_parents, NULL);
    gp_session_calls_after_fork();
}

static int start(void)
{
    const char *engine = gp_setting(GP_SETTING_ENGINE), *signal_text = gp_setting(GP_SETTING_SIGNAL);
    if ((engine != NULL && gp_sampler_choose_engine(engine) != 0) ||
        (signal_text != NULL && gp_sampling_signal_choose(signal_text) != 0))
        return -EINVAL;
    unsigned hz = (unsigned)gp_setting_number(GP_SETTING_FREQUENCY);
    atomic_store_explicit(&gp_activity_wanted, true, memory_order_relaxed);
    int error = gp_sampler_acquire(hz);
    if (error != 0)
        return error;
    gp_recording_begin(&gp_session_recording, hz);
    error = open_now();
    if (error != 0) {
        gp_sampler_release(hz);
        return error;
    }
    last_flush_ns = gp_clock_ns(CLOCK_MONOTONIC);
    started = was_started = true;
    gp_wait_want(1);
    gp_sink_add(&session_sink);
    atomic_store_explicit(&gp_spawn_wanted, true, memory_order_relaxed);
    gp_spans_want(GP_SPANS_CAPTURED, true);
    gp_session_calls_start();
    return 0;
}

int gp_session_start(void)
{
    if (gp_setting(GP_SETTING_OUTPUT) == NULL || !gp_follow_image())
        return 0;
    gp_sampler_follow_forks(gp_follow_forks());
    // No sample before all is in place: the time that it takes to get there is not the program's.
    sigset_t signals, old;
    sigfillset(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &old);
    int error = start();
    gp_sampler_begin_here();
    gp_session_recording.start_ticks = gp_ticks();
    gp_session_report_start();
    pthread_sigmask(SIG_SETMASK, &old, NULL); // the interposed one: where it was blocked before, it is no more
    if (error != 0)
        gp_closing_say_failed(error);
    return error;
}
