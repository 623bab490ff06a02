// SPDX-License-Identifier: MIT
#include "record/record_state.h"

#include <time.h>

#include "collect/sampler.h"
#include "record/rotation.h"
#include "record/session_flush.h"
#include "record/session_report.h"
#include "record/session_size.h"
#include "signal/ticks.h"
#include "trace/span.h"

enum {
    FLUSH_BYTES = 1 << 20,
    WAITS_AT_END = 200, // for the writing thread, where it writes to a pipe
    FILE_WAITS_AT_END = 600,
};

// Findings of a round.
enum event {
    QUIET,   // nothing is to be done now: it is not time yet, or the disk is slow and records wait where they are
    NOTHING, // there is nothing to report, and no file is begun for that
    FAILED,  // the file cannot be written any further
    DUE,     // it is time to write, or that was asked for
    TURN,    // the next part is to begin
    FULL,    // the file is as large as it may be
    ASKED,   // its end was asked for by a command
    ENDS,    // the program ends or becomes another; or means to, and goes on
    EVENTS,
};

void gp_record_ask_nothing(gp_record_t *record)
{
    record->ends = GP_ENDING_NOT;
    record->flushes = false;
    atomic_store_explicit(&record->flushing, false, memory_order_release);
    atomic_store_explicit(&record->ending, GP_ENDING_NOT, memory_order_release);
}

// Take back the requests that the round has done; a flush, if all is on its way.
static void record_state_answer(gp_record_t *record, bool is_written)
{
    if (record->flushes && is_written)
        atomic_store_explicit(&record->flushing, false, memory_order_release);
    if (record->ends != GP_ENDING_NOT)
        atomic_store_explicit(&record->ending, GP_ENDING_NOT, memory_order_release);
}

static void record_state_hand_over_last(gp_record_t *record)
{
    const gp_writer_t *writer = &record->recording.writer;
    int waits = writer->is_regular ? FILE_WAITS_AT_END : WAITS_AT_END;
    for (int i = 0; gp_writer_is_busy(writer) && i < waits; i++)
        gp_session_let_it_write(&record->recording); // with a part of the report
    record->is_out = gp_session_hand_over(&record->recording);
}

static uint32_t record_state_end_reason(const gp_record_t *record)
{
    if (record->ends == GP_ENDING_EXIT && atomic_load_explicit(&record->is_sandboxed, memory_order_acquire))
        return GP_END_SANDBOX;
    if (record->ends == GP_ENDING_NOT)
        return GP_END_FULL;
    if (record->ends == GP_ENDING_EXEC)
        return GP_END_EXEC;
    if (gp_sampler_has_yielded())
        return GP_END_STOPPED;
    return record->ends == GP_ENDING_ASKED ? GP_END_ASKED : GP_END_EXIT;
}

static void record_state_write_end(gp_recording_t *recording, uint32_t reason)
{
    gp_end_record_t *end = gp_writer_add(&recording->writer, GP_CHUNK_END, sizeof(*end));
    if (end == NULL)
        return;
    end->time_ns = gp_recording_since(recording, gp_ticks());
    end->reason = reason;
}

static void record_state_note_start(void *earliest, const gp_span_mark_t *mark)
{
    uint64_t *ticks = earliest;
    *ticks = mark->span.start < *ticks ? mark->span.start : *ticks;
}

// The next part. A request that is open is in it as a whole: it speaks of times from its beginning on.
static void record_state_begin_part(gp_record_t *record, const char *aside)
{
    gp_recording_t *recording = &record->recording;
    uint64_t ticks = gp_ticks(), earliest = ticks;
    gp_span_each_open(ticks, record_state_note_start, &earliest);
    gp_recording_turn(recording, record->frequency, earliest);
    gp_session_report_turn();
    gp_writer_turn(&recording->writer, aside, &recording->header);
    gp_recording_meta(recording);
    gp_recording_labels(recording);
    gp_rotation_begin(record->now);
}

// --- what a round does; each returns the state that follows

typedef enum gp_record_state act_t(gp_record_t *record);

static enum gp_record_state record_state_act_stay(gp_record_t *record)
{
    record_state_answer(record, true);
    return GP_RECORD_MEMORY;
}

static enum gp_record_state record_state_act_give_up(gp_record_t *record)
{
    record->is_out = record->ends <= GP_ENDING_ASKED;
    if (!record->is_out) {
        record_state_answer(record, true);
        return gp_record_state_of(record);
    }
    gp_record_ask_nothing(record);
    return GP_RECORD_WRITTEN;
}

static enum gp_record_state record_state_act_write(gp_record_t *record)
{
    gp_session_report(&record->recording, record->now, GP_REPORT_NEWS);
    record->last_flush_ns = record->now;
    record->is_out = gp_session_hand_over(&record->recording);
    record_state_answer(record, record->is_out);
    return GP_RECORD_OPEN;
}

static enum gp_record_state record_state_act_finish_part(gp_record_t *record)
{
    static char aside[GP_ROTATION_PATH_SIZE];
    record_state_hand_over_last(record);
    if (!record->is_out)
        return GP_RECORD_TURNING; // the disk is slow: what comes meanwhile is in this part, too
    if (!gp_rotation_make_room(&record->recording.writer, aside))
        return GP_RECORD_WRITTEN;
    record_state_begin_part(record, aside);
    return GP_RECORD_OPEN;
}

static enum gp_record_state record_state_act_turn(gp_record_t *record)
{
    gp_session_report(&record->recording, record->now, GP_REPORT_TURN);
    record_state_write_end(&record->recording, GP_END_TURNED);
    record->last_flush_ns = record->now;
    return record_state_act_finish_part(record);
}

// The program goes on, perhaps, and so does the recording.
static enum gp_record_state record_state_act_end(gp_record_t *record)
{
    gp_session_report(&record->recording, record->now, GP_REPORT_LAST);
    record_state_write_end(&record->recording, record_state_end_reason(record));
    record->last_flush_ns = record->now;
    record_state_hand_over_last(record);
    record_state_answer(record, record->is_out);
    return GP_RECORD_OPEN;
}

static enum gp_record_state record_state_act_finish(gp_record_t *record)
{
    record_state_act_end(record);
    return record->is_out ? GP_RECORD_WRITTEN : GP_RECORD_LAST;
}

static enum gp_record_state record_state_act_finish_late(gp_record_t *record)
{
    record_state_hand_over_last(record);
    gp_record_ask_nothing(record);
    return record->is_out ? GP_RECORD_WRITTEN : GP_RECORD_LAST;
}

static enum gp_record_state record_state_act_rest(gp_record_t *record)
{
    gp_record_ask_nothing(record);
    return GP_RECORD_WRITTEN;
}

// Acts of a round, by state and finding; NULL = none.
static act_t *const acts[GP_RECORD_STATES][EVENTS] = {
    [GP_RECORD_MEMORY] = {[NOTHING] = record_state_act_stay,
                          [FAILED] = record_state_act_give_up,
                          [DUE] = record_state_act_write,
                          [TURN] = record_state_act_turn,
                          [FULL] = record_state_act_finish,
                          [ASKED] = record_state_act_finish,
                          [ENDS] = record_state_act_end},
    [GP_RECORD_OPEN] = {[FAILED] = record_state_act_give_up,
                        [DUE] = record_state_act_write,
                        [TURN] = record_state_act_turn,
                        [FULL] = record_state_act_finish,
                        [ASKED] = record_state_act_finish,
                        [ENDS] = record_state_act_end},
    [GP_RECORD_TURNING] = {[FAILED] = record_state_act_give_up,
                           [DUE] = record_state_act_finish_part,
                           [ASKED] = record_state_act_finish,
                           [ENDS] = record_state_act_end},
    [GP_RECORD_LAST] = {[QUIET] = record_state_act_finish_late}, // in every round
    [GP_RECORD_WRITTEN] = {[QUIET] = record_state_act_rest},
};

// --- what a round finds

static bool record_state_is_due(const gp_record_t *record)
{
    return record->ends != GP_ENDING_NOT || record->flushes ||
           record->now - record->last_flush_ns >= gp_session_flush_every_ns() ||
           gp_writer_pending(&record->recording.writer) >= FLUSH_BYTES;
}

static enum event record_state_find(const gp_record_t *record, enum gp_record_state state)
{
    const gp_writer_t *writer = &record->recording.writer;
    if (!gp_record_goes_on(record) || !record_state_is_due(record))
        return QUIET;
    // A child that did nothing has no file, unless it was asked for one.
    if (state == GP_RECORD_MEMORY && record->ends != GP_ENDING_ASKED && gp_writer_pending(writer) == 0)
        return NOTHING;
    if (gp_writer_is_busy(writer))
        return QUIET;
    if (gp_writer_has_failed(writer))
        return FAILED;
    if (record->ends != GP_ENDING_NOT)
        return record->ends == GP_ENDING_ASKED ? ASKED : ENDS;
    return DUE;
}

// Make the file, and what tells how large it becomes. Returns what the round finds then.
static enum event record_state_prepare(gp_record_t *record, enum gp_record_state state, enum event event)
{
    gp_recording_t *recording = &record->recording;
    if (state == GP_RECORD_MEMORY)
        gp_session_open_in_child(recording);
    if (record->flushes)
        gp_session_report_all();
    gp_recording_definitions(recording);
    if (event == DUE && !record->flushes && gp_session_is_time_to_turn(recording, record->now))
        return TURN;
    return event == DUE && gp_session_is_nearly_full(recording) ? FULL : event;
}

void gp_record_round_begins(gp_record_t *record)
{
    record->ends = (enum gp_record_ending)atomic_load_explicit(&record->ending, memory_order_acquire);
    record->flushes = atomic_load_explicit(&record->flushing, memory_order_acquire);
}

void gp_record_round_ends(gp_record_t *record)
{
    enum gp_record_state state = gp_record_state_of(record);
    record->now = gp_clock_ns(CLOCK_MONOTONIC);
    enum event event = record_state_find(record, state);
    if (event >= DUE && !(state == GP_RECORD_TURNING && event == DUE)) // the end of the part comes first
        event = record_state_prepare(record, state, event);
    act_t *act = acts[state][event];
    if (act != NULL)
        gp_record_set_state(record, act(record));
}
