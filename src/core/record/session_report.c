// SPDX-License-Identifier: MIT
#include "record/session_report.h"

#include <string.h>
#include <time.h>

#include "collect/collector.h"
#include "collect/cpu_time.h"
#include "collect/open_sleep.h"
#include "collect/ring_drain.h"
#include "collect/sleep_scan.h"
#include "collect/thread_sleeps.h"
#include "collect/waiting_stack.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "coro/threads.h"
#include "model/own_cost.h"
#include "record/census.h"
#include "record/census_due.h"
#include "record/open_requests.h"
#include "record/ring_file.h"
#include "record/session_calls.h"
#include "record/session_records.h"
#include "record/writing.h"
#include "signal/activity.h"
#include "signal/ledger_edges.h"
#include "signal/rest.h"
#include "trace/span.h"

enum {
    LEAST_NS = 200000000, // between two scans of a kind, unless it is to be less
    LEDGER_SHARE = 50,    // the ledger's scan takes at most 1/50 of the collector's time, and so do the threads' clocks
    PARKED_SHARE = 100,   // looking at parked stacks takes at most 1/100
    PIECES_BYTES = 2 << 20, // of a scan in pieces, handed over at a time
    WAITS = 20,             // for the writing thread, after a piece that finds it busy
    WAIT_NS = 5000000,
};

// A wait in progress is written once it has lasted this long, and again each time that it has gone on for as long.
#define LONG_WAIT_NS 5000000000ull

// So is a sleep in a slice that goes on: again with each quarter of its length so far, from this one on.
#define SLEEP_NS 50000000ull

// A wait in progress when a rest begins is written if it has lasted this long.
#define SHORT_WAIT_NS 5000000ull

static uint64_t next_threads_ns, next_ledger_ns, next_waits_ns, next_rest_ns, start_process_ns, start_own_ns;
static uint64_t least_ns = LEAST_NS;
static uint64_t before[GP_COUNTER_COUNT]; // what was counted when the capture began
static uint32_t last_census;
static bool is_last;
static size_t live_coros;
static uint64_t handed_over_bytes;
static struct { // by the latest record of counters
    uint64_t counters[GP_COUNTER_COUNT], process_ns, own_ns, spawns_lost;
} reached;

// A thread that only sleeps has its time now and then.
static bool session_report_is_worth_a_record(prof_coro_t *coro, uint64_t id, const gp_ledger_t *ledger)
{
    const gp_ledger_t *told = &gp_coro_written(coro)->reported;
    return is_last || gp_coro_written(coro)->ledger_id != id || ledger->cpu_ns != told->cpu_ns ||
           ledger->slice_ns - told->slice_ns >= LONG_WAIT_NS;
}

// Waits in progress are written at the end, and now and then where they last.
static void session_report_live(prof_coro_t *coro, void *argument)
{
    gp_recording_t *recording = argument;
    gp_ledger_t ledger;
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire), now = gp_ticks();
    if (id == 0 || (coro->kind == GP_CORO_THREAD && !gp_recording_has_coro(recording, coro, id)))
        return; // a thread's own stack is first written with its thread
    gp_session_report_name(recording, coro, id);
    live_coros++;
    if (gp_session_read_ledger(coro, id, now, &ledger)) {
        if (session_report_is_worth_a_record(coro, id, &ledger))
            gp_session_report_ledger(recording, coro, id, &ledger);
        return;
    }
    if (is_last) {
        gp_waiting_stack_is_forsaken(coro, false); // no round follows, in which a retired one would be reported
        gp_ledger_read(coro, now, &ledger);
        gp_session_report_last_ledger(recording, coro, id, &ledger);
        return;
    }
    gp_ledger_read_closed(coro, now, &ledger);
    if (gp_coro_written(coro)->ledger_id == id && ledger.switches == gp_coro_written(coro)->reported.switches &&
        ledger.cpu_ns == gp_coro_written(coro)->reported.cpu_ns) {
        gp_ledger_t open;
        gp_ledger_read(coro, now, &open);
        uint64_t told = gp_coro_written(coro)->reported.ready_ns + gp_coro_written(coro)->reported.parked_ns +
                        gp_coro_written(coro)->reported.waiting_ns;
        if (open.ready_ns + open.parked_ns + open.waiting_ns - told < LONG_WAIT_NS)
            return;
        if (!gp_waiting_stack_is_forsaken(coro, true))
            ledger = open;
        else if (gp_ledger_edge_load(&coro->id) != id)
            return; // retired
    }
    gp_session_report_ledger(recording, coro, id, &ledger);
}

void gp_session_count_refused(const gp_recording_t *recording, uint64_t counters[GP_COUNTER_COUNT])
{
    const uint64_t *refused = recording->writer.refused;
    counters[GP_COUNTER_UNWRITTEN] = refused[GP_CHUNK_SAMPLES];
    counters[GP_COUNTER_UNWRITTEN_HOGS] = refused[GP_CHUNK_HOGS] + refused[GP_CHUNK_DELAYS];
    counters[GP_COUNTER_UNWRITTEN_ACTIVITIES] = refused[GP_CHUNK_ACTIVITIES];
    counters[GP_COUNTER_UNWRITTEN_COROS] = refused[GP_CHUNK_COROS] + refused[GP_CHUNK_ORIGINS];
    counters[GP_COUNTER_UNWRITTEN_SPANS] = refused[GP_CHUNK_SPANS];
    counters[GP_COUNTER_UNWRITTEN_STACKS] = refused[GP_CHUNK_STACKS] + refused[GP_CHUNK_TRACES];
    counters[GP_COUNTER_UNWRITTEN_LEDGERS] = recording->ledgers_lost;
    counters[GP_COUNTER_UNWRITTEN_CENSUS] = refused[GP_CHUNK_CENSUS];
    counters[GP_COUNTER_INTERNED_ANEW] = recording->traces.anew + recording->stacks.anew;
}

void gp_session_counters(uint64_t counters[GP_COUNTER_COUNT])
{
    gp_collector_counters(counters);
    gp_ring_drain_leave_late(counters);
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        counters[i] -= before[i] < counters[i] ? before[i] : counters[i];
}

double gp_session_report_own_share(const uint64_t counters[GP_COUNTER_COUNT])
{
    uint64_t process_ns = reached.process_ns > start_process_ns ? reached.process_ns - start_process_ns : 0;
    if (process_ns < GP_OWN_COST_LEAST_NS)
        return 0;
    return gp_own_cost_share(counters, process_ns, reached.own_ns - start_own_ns);
}

static void session_report_write_counters(gp_recording_t *recording)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_session_counters(counters);
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        reached.counters[i] = before[i] + counters[i];
    gp_session_count_refused(recording, counters);
    reached.spawns_lost = counters[GP_COUNTER_LOST_SPAWNS] = atomic_load_explicit(&gp_spawn_lost, memory_order_relaxed);
    gp_counters_record_t *record =
        gp_writer_add(&recording->writer, GP_CHUNK_COUNTERS, sizeof(*record) + sizeof(counters));
    if (record == NULL)
        return;
    uint64_t process_ns = reached.process_ns = gp_cpu_time_process();
    reached.own_ns = gp_thread_helper_cpu_ns();
    record->time_ns = gp_recording_since(recording, gp_ticks());
    record->process_cpu_ns = process_ns > start_process_ns ? process_ns - start_process_ns : 0;
    record->own_cpu_ns = reached.own_ns - start_own_ns;
    record->count = GP_COUNTER_COUNT;
    memcpy(record + 1, counters, sizeof(counters));
}

void gp_session_let_it_write(gp_recording_t *recording)
{
    gp_drain_leave();
    gp_writing_wait(&recording->writer, WAIT_NS);
    gp_drain_enter();
    gp_collector_between_pieces();
}

bool gp_session_hand_over(gp_recording_t *recording)
{
    gp_recording_definitions(recording); // what coroutines were found waiting in, too
    uint64_t pending = gp_writer_pending(&recording->writer);
    if (gp_writer_is_busy(&recording->writer))
        return false;
    gp_ring_file_note(recording);
    if (!gp_writer_hand_over(&recording->writer))
        return false;
    handed_over_bytes += pending;
    gp_writing_begin(&recording->writer);
    return true;
}

// A scan of hundreds of thousands of coroutines is more than the writer has room for. The lock is not held while it is
// waited for; what still finds no room is counted.
static void session_report_between_pieces(gp_recording_t *recording)
{
    gp_collector_between_pieces();
    for (int i = 0;
         gp_writer_pending(&recording->writer) > PIECES_BYTES && !gp_session_hand_over(recording) && i < WAITS; i++)
        gp_session_let_it_write(recording);
}

// Look at all coroutines, in pieces.
static void session_report_scan(gp_recording_t *recording, void (*visit)(prof_coro_t *coro, void *argument),
                                void *argument)
{
    gp_coro_cursor_t cursor = {0};
    for (bool more = true; more;
         session_report_between_pieces(recording)) // after the last one, too: another scan may follow
        more = gp_coro_piece(&cursor, visit, argument);
}

// A thread's own stack sleeps for itself where it works for a request; else for its coroutines.
static bool session_report_is_at_rest(gp_thread_t *thread, prof_coro_t *coro)
{
    uint64_t trace[2];
    gp_waiting_stack_trace(coro, trace);
    return coro == thread->root && (trace[0] | trace[1]) == 0;
}

void gp_session_report_sleep(gp_recording_t *recording, gp_thread_t *thread, bool is_wanted)
{
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_acquire);
    uint64_t id = atomic_load_explicit(&thread->current_id, memory_order_relaxed), now = gp_ticks();
    if (coro == NULL || atomic_load_explicit(&coro->id, memory_order_acquire) != id ||
        session_report_is_at_rest(thread, coro))
        return;
    if (is_last || is_wanted)
        gp_sleep_scan_look_now(thread);
    gp_ledger_t ledger;
    if (gp_session_read_ledger(coro, id, now, &ledger)) {
        if (is_wanted)
            gp_session_report_ledger(recording, coro, id, &ledger);
        return;
    }
    gp_ledger_read(coro, now, &ledger);
    uint64_t since = gp_ledger_edge_load(&coro->since), open_ns = now > since ? gp_ticks_to_ns(now - since) : 0;
    uint64_t told_ns = gp_coro_written(coro)->ledger_id == id ? gp_coro_written(coro)->reported.slice_ns : 0;
    uint64_t more_ns = ledger.slice_ns > told_ns ? ledger.slice_ns - told_ns : 0;
    if (!is_last && !is_wanted && more_ns < LONG_WAIT_NS && (more_ns < SLEEP_NS || more_ns < open_ns / 4))
        return;
    uint64_t slept_ns = gp_open_sleep_ns(thread, coro, now);
    if (slept_ns == 0 || atomic_load_explicit(&coro->id, memory_order_acquire) != id)
        return;
    ledger.blocked_ns += slept_ns;
    gp_session_report_ledger(recording, coro, id, &ledger);
}

static void session_report_sleeps(gp_recording_t *recording)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE)
            gp_session_report_sleep(recording, thread, false);
}

static void session_report_write_ledger(gp_recording_t *recording, uint64_t now)
{
    if (now < next_ledger_ns && !is_last)
        return;
    live_coros = 0;
    session_report_scan(recording, session_report_live, recording);
    session_report_sleeps(recording);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_ledger_ns = now + (took * LEDGER_SHARE > least_ns ? took * LEDGER_SHARE : least_ns);
}

static void session_report_take_parked(prof_coro_t *coro, void *least_ticks)
{
    gp_waiting_stack_take(coro, *(const uint64_t *)least_ticks);
}

// Waits that go on: samples of their time so far.
static void session_report_write_waits(gp_recording_t *recording, uint64_t now)
{
    uint64_t least_ticks = is_last ? 0 : gp_ticks_from_ns(LONG_WAIT_NS);
    if (now < next_waits_ns && !is_last)
        return;
    session_report_scan(recording, session_report_take_parked, &least_ticks);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_waits_ns = now + (took * PARKED_SHARE > LONG_WAIT_NS ? took * PARKED_SHARE : LONG_WAIT_NS);
}

typedef struct moment {
    gp_recording_t *recording;
    uint64_t ticks;
} moment_t;

// Activities open when the process ends. Called once all rings are empty, or nearly so.
static void session_report_take_open_activity(prof_coro_t *coro, void *argument)
{
    const moment_t *now = argument;
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire);
    if (id != 0)
        gp_session_take_last_activity(now->recording, coro, id, now->ticks);
}

// Up to where a rest begins; the timeline, of what works for a request.
static void session_report_take_before_rest(prof_coro_t *coro, void *argument)
{
    const moment_t *now = argument;
    gp_activity_mark_t mark;
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire), trace[2];
    gp_waiting_stack_trace(coro, trace);
    gp_waiting_stack_take(coro, gp_ticks_from_ns(SHORT_WAIT_NS));
    if (id == 0 || (trace[0] | trace[1]) == 0 || !gp_activity_last(coro, id, now->ticks, &mark))
        return;
    mark.is_open = false;
    gp_session_take_activity(now->recording, &mark, NULL);
}

void gp_session_report_before_rest(gp_recording_t *recording)
{
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    moment_t moment = {recording, gp_ticks()};
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    if (now < next_rest_ns)
        return;
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE)
            gp_thread_sleeps_close(thread);
    session_report_scan(recording, session_report_take_before_rest, &moment);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_rest_ns = now + took * PARKED_SHARE;
}

// Live coroutines, now and then: a capture has them for its end, or for shortly before where the process was killed.
static void session_report_write_census(gp_recording_t *recording, uint64_t now)
{
    if (!gp_census_is_due(now) && !is_last)
        return;
    size_t count = gp_census_take(recording, ++last_census, NULL, session_report_between_pieces);
    gp_census_taken(now, gp_recording_since(recording, gp_ticks()), count);
}

// Threads and counters, for which each thread's clock is read. Returns whether it was time for them.
static bool session_report_write_threads(gp_recording_t *recording, uint64_t now)
{
    if (now < next_threads_ns && !is_last)
        return false;
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE) {
            if (is_last)
                gp_thread_sleeps_close(thread);
            gp_session_take_thread(recording, thread);
        }
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_threads_ns = now + (took * LEDGER_SHARE > least_ns ? took * LEDGER_SHARE : least_ns);
    return true;
}

static void session_report_take_open_span(void *recording, const gp_span_mark_t *mark)
{
    gp_session_take_span(recording, mark);
}

void gp_session_report(gp_recording_t *recording, uint64_t now, gp_report_how_t how)
{
    is_last = how != GP_REPORT_NEWS;
    bool is_time_for_counters = session_report_write_threads(recording, now);
    session_report_write_ledger(recording, gp_clock_ns(CLOCK_MONOTONIC));
    session_report_write_waits(recording, gp_clock_ns(CLOCK_MONOTONIC));
    gp_session_calls_write(&recording->writer, now, is_last);
    moment_t moment = {recording, gp_ticks()};
    if (is_last)
        session_report_scan(recording, session_report_take_open_activity, &moment);
    if (how == GP_REPORT_LAST)
        gp_span_each_open(moment.ticks, session_report_take_open_span, recording);
    else if (how == GP_REPORT_NEWS)
        gp_session_open_report(recording, gp_clock_ns(CLOCK_MONOTONIC), least_ns, session_report_scan);
    session_report_write_census(recording, gp_clock_ns(CLOCK_MONOTONIC));
    if (is_time_for_counters)
        session_report_write_counters(recording);
}

uint64_t gp_session_handed_over_bytes(void)
{
    return handed_over_bytes;
}

size_t gp_session_live_coros(void)
{
    return live_coros;
}

void gp_session_report_start(void)
{
    start_process_ns = gp_cpu_time_process();
}

void gp_session_report_within(uint64_t ns)
{
    least_ns = ns < LEAST_NS ? ns : LEAST_NS;
}

void gp_session_report_all(void)
{
    next_threads_ns = next_ledger_ns = next_waits_ns = 0;
    gp_census_make_due();
    gp_session_open_report_all(true);
}

// The coroutine's time so far is in the capture of the parent, or of an earlier time, or in none.
static void session_report_forget_coro(prof_coro_t *coro, void *unused)
{
    (void)unused;
    gp_coro_written(coro)->written_id = 0;
    uint64_t id = gp_coro_written(coro)->ledger_id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    gp_coro_written(coro)->is_whole = gp_coro_written(coro)->is_over = false;
    if (!gp_session_read_ledger(coro, id, gp_ticks(), &gp_coro_written(coro)->reported))
        gp_ledger_read(coro, gp_ticks(), &gp_coro_written(coro)->reported);
    gp_waiting_stack_trace(coro, gp_coro_written(coro)->trace);
}

static void session_report_begin(void)
{
    is_last = false;
    handed_over_bytes = 0;
    next_threads_ns = next_ledger_ns = next_waits_ns = 0;
    gp_census_make_due();
    gp_session_open_report_all(false);
    atomic_store_explicit(&gp_spawn_lost, 0, memory_order_relaxed);
    gp_coro_each(session_report_forget_coro, NULL);
}

void gp_session_report_in_child(void)
{
    session_report_begin();
    memset(before, 0, sizeof(before));
    start_process_ns = start_own_ns = 0;
}

// Counts so far are of an earlier part or capture; but a rest that goes on is of this one, too.
static void session_report_count_from(const uint64_t counters[GP_COUNTER_COUNT])
{
    memcpy(before, counters, sizeof(before));
    before[GP_COUNTER_RESTS] -= gp_rest_is_now() && before[GP_COUNTER_RESTS] > 0;
}

void gp_session_report_turn(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        if (thread->session.cpu_ns != 0 && thread->session.cpu_ns != UINT64_MAX)
            thread->session.start_cpu_ns = thread->session.cpu_ns;
        thread->session.cpu_ns = UINT64_MAX;
        thread->session.name_age = 0;
    }
    is_last = false;
    handed_over_bytes = 0;
    next_threads_ns = next_ledger_ns = next_waits_ns = 0;
    gp_census_make_due();
    gp_session_open_report_all(false);
    session_report_count_from(reached.counters);
    start_process_ns = reached.process_ns;
    start_own_ns = reached.own_ns;
    atomic_fetch_sub_explicit(&gp_spawn_lost, reached.spawns_lost, memory_order_relaxed);
}

static void session_report_forget_thread(gp_thread_t *thread)
{
    uint64_t cpu_ns = gp_cpu_time_thread(atomic_load_explicit(&thread->tid, memory_order_relaxed));
    memset(&thread->session, 0, sizeof(thread->session));
    thread->session.start_cpu_ns = cpu_ns;
    thread->session.cpu_ns = UINT64_MAX;
}

void gp_session_report_anew(void)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE)
            session_report_forget_thread(thread);
    session_report_begin();
    gp_collector_counters(counters);
    gp_ring_drain_leave_late(counters);
    session_report_count_from(counters);
    start_process_ns = gp_cpu_time_process();
    start_own_ns = gp_thread_helper_cpu_ns();
}
