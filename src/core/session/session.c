// SPDX-License-Identifier: MIT
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/functions.h"
#include "collect/parked.h"
#include "collect/sampler.h"
#include "collect/samples.h"
#include "collect/sampling_signal.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "model/size_limit.h"
#include "session/census.h"
#include "session/census_service.h"
#include "session/closing.h"
#include "session/follow.h"
#include "session/recording.h"
#include "session/session_calls.h"
#include "session/span_listen.h"
#include "session/writing.h"
#include "settings.h"
#include "signal/activity.h"
#include "signal/edge.h"
#include "signal/slice.h"
#include "signal/wait.h"
#include "trace/span.h"

enum {
    FLUSH_NS = 200000000, // at most this much is lost when the process is killed
    FLUSH_BYTES = 1 << 20,
    NAME_EVERY = 5,    // records of a thread between two looks at its name
    LEDGER_SHARE = 50, // the ledger's scan takes at most 1/50 of the collector's time, and so do the threads' clocks
    ENDING_LIMIT_NS = 1000000000,
    PARKED_SHARE = 100,     // looking at parked stacks takes at most 1/100
    PIECES_BYTES = 2 << 20, // of a scan in pieces, handed over at a time
    WAITS = 20,             // for the writing thread, after a piece that finds it busy
    WAITS_AT_END = 200,
    WAIT_NS = 5000000,
    CENSUS_PART = 8,   // the next census after 1/8 of the time so far: the file stays small
    LAST_BYTES = 4096, // of what is written at the end; and for each live coroutine:
    LAST_CORO_BYTES = 64,
    KNOWN_BYTES = 256 << 10, // of records after which it is known how small they become in the file
};

// Traces and stacks have numbers of 32 bits: after days of 10,000 traces a second there are only as many left as two
// flushes may need.
#define LAST_NUMBER (UINT32_MAX - (1u << 22))

// A wait in progress is written once it has lasted this long, and again each time that it has gone on for as long.
#define LONG_WAIT_NS 5000000000ull
#define CENSUS_NS    5000000000ull // least time between two censuses

enum ending { ENDING_NOT, ENDING_EXIT, ENDING_EXEC };

static const gp_sink_t session_sink, finished_sink;
static gp_recording_t recording = {.writer = GP_WRITER_INIT};
static uint64_t last_flush_ns, next_threads_ns, next_ledger_ns, next_waits_ns, next_census_ns, start_process_ns;
static uint32_t last_census;
static _Atomic bool started;
static bool was_started, opened;
static bool is_last;               // what is reported now is the last of this capture
static bool is_over;               // the last of it has been handed over, and the program goes on
static size_t live_coros;          // of the latest look at all of them
static uint64_t handed_over_bytes; // of records, in all
static gp_closing_t finished;      // the last word on a recording that is over
static _Atomic int ending;
static _Atomic bool closing; // the last word is to be said
static uint64_t last_hog;

static void write_thread(gp_thread_t *thread)
{
    uint64_t cpu_ns = atomic_load_explicit(&thread->final_cpu_ns, memory_order_relaxed);
    if (cpu_ns == 0)
        cpu_ns = gp_sampler_thread_cpu_ns(thread->tid);
    if (cpu_ns == thread->session.cpu_ns)
        return; // idle threads cost nothing
    thread->session.cpu_ns = cpu_ns;
    if (thread->session.name_age++ % NAME_EVERY == 0)
        gp_recording_name_thread(thread);
    gp_recording_thread(&recording, thread, cpu_ns);
}

// From here on, what the coroutine did is reported under `trace`.
static void begin_ledger(prof_coro_t *coro, uint64_t id)
{
    if (coro->session.ledger_id == id)
        return;
    coro->session.ledger_id = id;
    coro->session.reported = (gp_ledger_t){0};
    memcpy(coro->session.trace, coro->birth_trace, sizeof(coro->session.trace));
}

static void report_ledger(prof_coro_t *coro, uint64_t id, const gp_ledger_t *now)
{
    gp_ledger_t more = *now;
    begin_ledger(coro, id);
    gp_ledger_subtract(&more, &coro->session.reported);
    if (more.cpu_ns == 0 && more.slice_ns == 0 && more.ready_ns == 0 && more.parked_ns == 0 && more.waiting_ns == 0)
        return;
    gp_recording_coro(&recording, coro, id, 0);
    uint32_t trace = gp_recording_trace(&recording, coro->session.trace);
    gp_ledger_record_t *record = gp_writer_add(&recording.writer, GP_CHUNK_LEDGER, sizeof(*record));
    if (record == NULL)
        return;
    *record = (gp_ledger_record_t){
        .coro_id = id,
        .trace = trace,
        .cpu_ns = more.cpu_ns,
        .switches = more.switches,
        .time_ns = gp_recording_since(&recording, gp_ticks()),
        .slice_ns = more.slice_ns,
        .blocked_ns = more.blocked_ns,
        .ready_ns = more.ready_ns,
        .parked_ns = more.parked_ns,
        .waiting_ns = more.waiting_ns,
        .spawned = more.spawned,
        .longest_ns = more.longest_ns,
    };
    coro->session.reported = *now;
}

// One that was renamed since it was written is written again, whatever it does.
static void report_name(prof_coro_t *coro, uint64_t id)
{
    if (coro->session.ledger_id == id && coro->kind != GP_CORO_THREAD)
        gp_recording_coro(&recording, coro, id, 0);
}

// Waits in progress are written at the end, and now and then where they last.
static void report_live(prof_coro_t *coro, void *unused)
{
    (void)unused;
    gp_ledger_t ledger;
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire), now = gp_ticks();
    if (id == 0 ||
        (coro->kind == GP_CORO_THREAD && atomic_load_explicit(&coro->session.written_id, memory_order_relaxed) != id))
        return; // a thread's own stack is first written with its thread
    report_name(coro, id);
    live_coros++;
    if (is_last) {
        gp_parked_is_forsaken(coro, false); // no round follows, in which a retired one would be reported
        gp_ledger_read(coro, now, &ledger);
        report_ledger(coro, id, &ledger);
        return;
    }
    gp_ledger_read_closed(coro, now, &ledger);
    if (coro->session.ledger_id == id && ledger.switches == coro->session.reported.switches &&
        ledger.cpu_ns == coro->session.reported.cpu_ns) {
        gp_ledger_t open;
        gp_ledger_read(coro, now, &open);
        uint64_t told =
            coro->session.reported.ready_ns + coro->session.reported.parked_ns + coro->session.reported.waiting_ns;
        if (open.ready_ns + open.parked_ns + open.waiting_ns - told < LONG_WAIT_NS)
            return;
        if (!gp_parked_is_forsaken(coro, true))
            ledger = open;
        else if (gp_edge_load(&coro->id) != id)
            return; // retired
    }
    report_ledger(coro, id, &ledger);
}

static bool wants_waits(void)
{
    return true;
}

// A wait that goes on: the ledger has it, too, so that all of it is taken back there where it turns out to have no end.
static void take_lasting(prof_coro_t *coro, uint64_t id)
{
    gp_ledger_t ledger;
    gp_ledger_read(coro, gp_ticks(), &ledger);
    report_ledger(coro, id, &ledger);
}

static void take_sample(const gp_sample_t *sample, gp_thread_t *thread, const gp_stack_t *stack,
                        const gp_share_t *shares, size_t count)
{
    bool own = thread != NULL && sample->coro == thread->root;
    gp_recording_coro(&recording, sample->coro, sample->coro_id, own ? thread->index : 0);
    uint32_t trace = gp_recording_trace(&recording, sample->trace),
             id = stack->depth > 0 ? gp_recording_stack(&recording, stack) : 0;
    for (size_t i = 0; i < count; i++) {
        gp_sample_record_t *record = gp_writer_add(&recording.writer, GP_CHUNK_SAMPLES, sizeof(*record));
        if (record == NULL)
            continue;
        record->time_ns = gp_recording_since(&recording, sample->ticks);
        record->weight_ns = shares[i].weight_ns;
        record->coro_id = sample->coro_id;
        record->thread = thread != NULL ? thread->index : 0;
        record->stack_id = id;
        record->trace = trace;
        record->kind = shares[i].kind;
    }
    if (thread == NULL)
        take_lasting(sample->coro, sample->coro_id);
}

static void take_hog(const gp_hog_mark_t *mark, gp_thread_t *thread, const gp_hog_sample_t *samples, size_t count)
{
    uint32_t stacks_of[count + 1];
    for (size_t i = 0; i < count; i++)
        stacks_of[i] = gp_recording_stack(&recording, &samples[i].stack);
    gp_recording_coro(&recording, mark->coro, mark->coro_id, mark->coro == thread->root ? thread->index : 0);
    uint32_t trace = gp_recording_trace(&recording, mark->trace);
    gp_hog_record_t *record =
        gp_writer_add(&recording.writer, GP_CHUNK_HOGS, sizeof(*record) + count * sizeof(gp_hog_stack_t));
    if (record == NULL)
        return;
    unsigned slot = thread->session.hog_count++ % GP_HOGS;
    thread->session.hogs[slot].start = mark->start;
    thread->session.hogs[slot].id = record->id = ++last_hog;
    record->coro_id = mark->coro_id;
    record->start_ns = gp_recording_since(&recording, mark->start);
    record->duration_ns = gp_ticks_to_ns(mark->end - mark->start);
    record->trace = trace;
    record->thread = thread->index;
    record->stack_count = (uint32_t)count;
    gp_hog_stack_t *out = (gp_hog_stack_t *)(void *)(record + 1);
    for (size_t i = 0; i < count; i++)
        out[i] = (gp_hog_stack_t){.stack_id = stacks_of[i], .weight_ns = samples[i].weight_ns};
}

static uint64_t hog_id(const gp_thread_t *thread, uint64_t start)
{
    for (unsigned i = 0; i < GP_HOGS; i++)
        if (thread->session.hogs[i].start == start)
            return thread->session.hogs[i].id;
    return 0;
}

static void take_delay(const gp_delay_mark_t *mark, gp_thread_t *thread)
{
    uint64_t hog = hog_id(thread, mark->hog_start);
    if (hog == 0)
        return;
    gp_recording_coro(&recording, mark->coro, mark->coro_id, 0);
    uint32_t trace = gp_recording_trace(&recording, mark->trace);
    gp_delay_record_t *record = gp_writer_add(&recording.writer, GP_CHUNK_DELAYS, sizeof(*record));
    if (record == NULL)
        return;
    record->hog_id = hog;
    record->coro_id = mark->coro_id;
    record->delay_ns = gp_ticks_to_ns(mark->delay_ticks);
    record->trace = trace;
}

static void take_activity(const gp_activity_mark_t *mark, gp_thread_t *thread)
{
    gp_recording_coro(&recording, mark->coro, mark->coro_id,
                      thread != NULL && mark->coro == thread->root ? thread->index : 0);
    uint32_t trace = gp_recording_trace(&recording, mark->trace);
    gp_activity_record_t *record = gp_writer_add(&recording.writer, GP_CHUNK_ACTIVITIES, sizeof(*record));
    if (record == NULL)
        return;
    record->coro_id = mark->coro_id;
    record->start_ns = gp_recording_since(&recording, mark->start);
    record->left_ns = gp_recording_since(&recording, mark->left);
    record->end_ns = gp_recording_since(&recording, mark->end);
    record->slice_ns = gp_ticks_to_ns(mark->slice_ticks);
    uint64_t ready = mark->ready > mark->left ? mark->ready : mark->left;
    record->ready_ns = mark->ready != 0 ? gp_recording_since(&recording, ready < mark->end ? ready : mark->end) : 0;
    record->waker_id = mark->ready != 0 ? mark->waker : 0;
    record->trace = trace;
    record->thread = mark->thread;
    record->is_open = mark->is_open;
}

static void take_last_activity(prof_coro_t *coro, uint64_t id, uint64_t now)
{
    gp_activity_mark_t mark;
    if (gp_activity_last(coro, id, now, &mark))
        take_activity(&mark, NULL);
}

static void take_trace_mark(const gp_trace_mark_t *mark)
{
    report_ledger(mark->coro, mark->coro_id, &mark->ledger);
    memcpy(mark->coro->session.trace, mark->trace, sizeof(mark->trace));
}

static void take_span(const gp_span_mark_t *mark)
{
    gp_recording_coro(&recording, mark->coro, mark->coro_id, 0);
    uint32_t trace = gp_recording_trace(&recording, mark->trace), stack = gp_recording_site(&recording, mark->site);
    size_t text_len = (size_t)mark->name_len + mark->fields_len;
    gp_span_record_t *record = gp_writer_add(&recording.writer, GP_CHUNK_SPANS, sizeof(*record) + text_len);
    if (record == NULL)
        return;
    record->id = mark->id;
    record->parent_id = mark->parent_id;
    record->coro_id = mark->coro_id;
    record->end_coro_id = mark->end_coro_id;
    record->start_ns = gp_recording_since(&recording, mark->start);
    record->end_ns = gp_recording_since(&recording, mark->end);
    record->cpu_ns = mark->times.cpu_ns;
    record->slice_ns = mark->times.slice_ns;
    record->blocked_ns = mark->times.blocked_ns;
    record->ready_ns = mark->times.ready_ns;
    record->parked_ns = mark->times.parked_ns;
    record->waiting_ns = mark->times.waiting_ns;
    record->switches = mark->times.switches;
    record->trace = trace;
    record->thread = mark->thread;
    record->stack_id = stack;
    record->kind = mark->kind;
    record->flags = mark->flags;
    record->name_len = mark->name_len;
    record->field_count = mark->field_count;
    record->fields_len = mark->fields_len;
    memcpy(record + 1, mark->text, text_len);
}

static void take_coro_over(prof_coro_t *coro)
{
    gp_ledger_t ledger;
    gp_span_tell_coro_over(coro);
    gp_ledger_read(coro, coro->final_ticks, &ledger);
    report_name(coro, coro->final_id);
    report_ledger(coro, coro->final_id, &ledger);
    take_last_activity(coro, coro->final_id, coro->final_ticks);
}

// What is not written again later.
static void count_refused(uint64_t counters[GP_COUNTER_COUNT])
{
    const uint64_t *refused = recording.writer.refused;
    counters[GP_COUNTER_UNWRITTEN] = refused[GP_CHUNK_SAMPLES];
    counters[GP_COUNTER_UNWRITTEN_HOGS] = refused[GP_CHUNK_HOGS] + refused[GP_CHUNK_DELAYS];
    counters[GP_COUNTER_UNWRITTEN_ACTIVITIES] = refused[GP_CHUNK_ACTIVITIES];
    counters[GP_COUNTER_UNWRITTEN_COROS] = refused[GP_CHUNK_COROS] + refused[GP_CHUNK_ORIGINS];
    counters[GP_COUNTER_UNWRITTEN_SPANS] = refused[GP_CHUNK_SPANS];
    counters[GP_COUNTER_UNWRITTEN_CENSUS] = refused[GP_CHUNK_CENSUS];
}

static void write_counters(void)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_collector_counters(counters);
    gp_samples_leave_late(counters);
    count_refused(counters);
    counters[GP_COUNTER_LOST_SPAWNS] = atomic_load_explicit(&gp_spawn_lost, memory_order_relaxed);
    gp_counters_record_t *record =
        gp_writer_add(&recording.writer, GP_CHUNK_COUNTERS, sizeof(*record) + sizeof(counters));
    if (record == NULL)
        return;
    uint64_t process_ns = gp_sampler_process_cpu_ns();
    record->time_ns = gp_recording_since(&recording, gp_ticks());
    record->process_cpu_ns = process_ns > start_process_ns ? process_ns - start_process_ns : 0;
    record->own_cpu_ns = gp_sampler_own_cpu_ns();
    record->count = GP_COUNTER_COUNT;
    memcpy(record + 1, counters, sizeof(counters));
}

static void write_end(uint32_t reason)
{
    gp_end_record_t *record = gp_writer_add(&recording.writer, GP_CHUNK_END, sizeof(*record));
    if (record == NULL)
        return;
    record->time_ns = gp_recording_since(&recording, gp_ticks());
    record->reason = reason;
}

static bool find_path(char *path, size_t size)
{
    const char *wanted = gp_setting(GP_SETTING_OUTPUT), *limit = gp_setting(GP_SETTING_MAX_SIZE);
    if (limit == NULL || !gp_size_limit_parse(limit, &recording.writer.max_bytes))
        recording.writer.max_bytes = 0;
    bool found = gp_recording_path(wanted, path, size);
    recording.writer.has_made_name = found && strcmp(path, wanted) != 0;
    return found;
}

// Of a forked child: the writing thread opens it, which may take as long as the file system pleases.
static void open_later(void)
{
    char path[4096];
    opened = true;
    if (find_path(path, sizeof(path)))
        gp_writer_open_later(&recording.writer, path, &recording.header);
    gp_recording_meta(&recording);
}

static int open_now(void)
{
    char path[4096];
    opened = true;
    int error =
        find_path(path, sizeof(path)) ? gp_writer_open(&recording.writer, path, &recording.header) : -ENAMETOOLONG;
    if (error == 0)
        gp_recording_meta(&recording);
    return error;
}

static void let_it_write(void)
{
    gp_drain_leave();
    gp_writing_wait(&recording.writer, WAIT_NS);
    gp_drain_enter();
    gp_collector_between_pieces();
}

// Hand over what there is, and what it refers to. Returns false where what was handed over before is not written yet.
static bool hand_over(void)
{
    gp_recording_definitions(&recording); // what coroutines were found waiting in, too
    uint64_t pending = gp_writer_pending(&recording.writer);
    if (gp_writer_is_busy(&recording.writer) || !gp_writer_hand_over(&recording.writer))
        return false;
    handed_over_bytes += pending;
    gp_writing_begin(&recording.writer);
    return true;
}

// A scan of hundreds of thousands of coroutines is more than the writer has room for. The lock is not held while it is
// waited for; what still finds no room is counted.
static void between_pieces(void)
{
    gp_collector_between_pieces();
    for (int i = 0; gp_writer_pending(&recording.writer) > PIECES_BYTES && !hand_over() && i < WAITS; i++)
        let_it_write();
}

// Look at all coroutines, in pieces.
static void scan(void (*visit)(prof_coro_t *coro, void *argument), void *argument)
{
    gp_coro_cursor_t cursor = {0};
    for (bool more = true; more; between_pieces()) // after the last one, too: another scan may follow
        more = gp_coro_piece(&cursor, visit, argument);
}

static void write_ledger(uint64_t now)
{
    if (now < next_ledger_ns && !is_last)
        return;
    live_coros = 0;
    scan(report_live, NULL);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_ledger_ns = now + (took * LEDGER_SHARE > FLUSH_NS ? took * LEDGER_SHARE : FLUSH_NS);
}

static void take_parked(prof_coro_t *coro, void *least_ticks)
{
    gp_parked_take(coro, *(const uint64_t *)least_ticks);
}

// Waits that go on: samples of what they were so far.
static void write_waits(uint64_t now)
{
    uint64_t least_ticks = is_last ? 0 : gp_ticks_from_ns(LONG_WAIT_NS);
    if (now < next_waits_ns && !is_last)
        return;
    scan(take_parked, &least_ticks);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_waits_ns = now + (took * PARKED_SHARE > LONG_WAIT_NS ? took * PARKED_SHARE : LONG_WAIT_NS);
}

// What goes on when the process ends. Called once all rings are empty, or nearly so.
static void take_open_activity(prof_coro_t *coro, void *now)
{
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire);
    if (id != 0)
        take_last_activity(coro, id, *(const uint64_t *)now);
}

// What is alive, now and then: a capture has it for its end, or for shortly before where the process was killed.
static void write_census(uint64_t now)
{
    if (now < next_census_ns && !is_last)
        return;
    gp_census_take(&recording, ++last_census, NULL, between_pieces);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    uint64_t pause = gp_recording_since(&recording, gp_ticks()) / CENSUS_PART;
    pause = pause > CENSUS_NS ? pause : CENSUS_NS;
    next_census_ns = now + (took * PARKED_SHARE > pause ? took * PARKED_SHARE : pause);
}

// Threads and counters, for which each thread's clock is read. Returns whether it was time for them.
static bool write_threads(uint64_t now)
{
    if (now < next_threads_ns && !is_last)
        return false;
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE)
            write_thread(thread);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_threads_ns = now + (took * LEDGER_SHARE > FLUSH_NS ? took * LEDGER_SHARE : FLUSH_NS);
    return true;
}

// What is reported every time, or as often as its price allows.
static void report(uint64_t now)
{
    bool is_time_for_counters = write_threads(now);
    write_ledger(gp_clock_ns(CLOCK_MONOTONIC));
    write_waits(gp_clock_ns(CLOCK_MONOTONIC));
    gp_session_calls_write(&recording.writer, now, is_last);
    uint64_t ticks = gp_ticks();
    if (is_last) {
        scan(take_open_activity, &ticks);
        gp_span_each_open(ticks, take_span);
    }
    write_census(gp_clock_ns(CLOCK_MONOTONIC));
    if (is_time_for_counters)
        write_counters();
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
                counters[GP_COUNTER_DROP_NO_THREAD] + recording.writer.refused[GP_CHUNK_SAMPLES],
        .spans_lost = counters[GP_COUNTER_LOST_SPANS] + counters[GP_COUNTER_CONSUMERS_LOST] +
                      recording.writer.refused[GP_CHUNK_SPANS],
        .is_whole = is_whole && !gp_writer_is_busy(&recording.writer),
    };
}

static void say_last_word(void)
{
    if (!atomic_exchange_explicit(&closing, false, memory_order_acquire))
        return;
    const gp_closing_t last = last_word();
    gp_closing_say(&recording, &last);
}

// Is there just room, in the file or among the numbers, for what is written at the end? The writer itself sees to it
// that the file is never larger.
static bool is_nearly_full(void)
{
    const gp_writer_t *writer = &recording.writer;
    uint64_t pending = gp_writer_pending(writer), packed = pending / 4;
    if (handed_over_bytes > KNOWN_BYTES && 2 * writer->bytes < handed_over_bytes / 2)
        packed = (uint64_t)((unsigned __int128)pending * 2 * writer->bytes / handed_over_bytes);
    uint64_t rest = packed + LAST_BYTES + live_coros * LAST_CORO_BYTES;
    uint32_t numbers = recording.traces.last > recording.stacks.last ? recording.traces.last : recording.stacks.last;
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
    if (end == ENDING_NOT && now - last_flush_ns < FLUSH_NS && gp_writer_pending(&recording.writer) < FLUSH_BYTES)
        return;
    if (is_over || (!opened && gp_writer_pending(&recording.writer) == 0)) { // a child that did nothing has no file
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
        return;
    }
    if (gp_writer_is_busy(&recording.writer))
        return; // the disk is slow: records wait where they are
    if (gp_writer_has_failed(&recording.writer)) {
        is_over = end == ENDING_NOT;
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
        return;
    }
    if (!opened)
        open_later();
    gp_recording_definitions(&recording);
    is_last = end != ENDING_NOT || is_nearly_full();
    report(now);
    if (is_last)
        write_end(end_reason(end));
    for (int i = 0; is_last && gp_writer_is_busy(&recording.writer) && i < WAITS_AT_END; i++)
        let_it_write(); // with a part of the report
    bool is_handed_over = hand_over();
    last_flush_ns = now;
    is_over = is_last && is_handed_over && end == ENDING_NOT;
    if (end != ENDING_NOT)
        atomic_store_explicit(&ending, ENDING_NOT, memory_order_release);
}

// The capture is as large as it may be and written, or cannot be written any further: nothing that costs the program
// anything goes on for it.
static void after_round(void)
{
    if (!is_over || gp_writer_is_busy(&recording.writer))
        return;
    gp_drain_enter();
    finished = last_word();
    int error = atomic_load_explicit(&recording.writer.error, memory_order_relaxed);
    finished.is_whole = true;
    finished.is_full = error == 0 || (error == -EFBIG && recording.writer.max_bytes != 0);
    unsigned hz = recording.header.frequency_hz;
    gp_recording_abandon(&recording);
    atomic_store_explicit(&recording.writer.error, error, memory_order_relaxed);
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
        gp_closing_say(&recording, &finished);
}

// Of a recording that is over while the program goes on.
static const gp_sink_t finished_sink = {.round = finished_round};

static const gp_sink_t session_sink = {
    .wants_waits = wants_waits,
    .sample = take_sample,
    .hog = take_hog,
    .delay = take_delay,
    .activity = take_activity,
    .trace_mark = take_trace_mark,
    .span = take_span,
    .coro_over = take_coro_over,
    .thread_over = write_thread,
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
        gp_writing_wait(&recording.writer, waited < ENDING_LIMIT_NS ? ENDING_LIMIT_NS - waited : 0);
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
    unsigned hz = recording.header.frequency_hz;
    gp_recording_abandon(&recording);
    gp_writing_after_fork();
    is_last = is_over = false;
    handed_over_bytes = 0;
    atomic_store_explicit(&gp_spawn_lost, 0, memory_order_relaxed);
    opened = false;
    last_flush_ns = next_threads_ns = next_ledger_ns = start_process_ns = 0;
    gp_recording_begin(&recording, hz);
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
    gp_recording_begin(&recording, hz);
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
    recording.start_ticks = gp_ticks();
    start_process_ns = gp_sampler_process_cpu_ns();
    pthread_sigmask(SIG_SETMASK, &old, NULL); // the interposed one: where it was blocked before, it is no more
    if (error != 0)
        gp_closing_say_failed(error);
    return error;
}
