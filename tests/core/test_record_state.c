// SPDX-License-Identifier: MIT
// The states of a recording: what each round does, and what follows, on a disk that does what it is told. All that a
// round calls stands here.
#include "cmocka_all.h"

#include <string.h>

#include "record/record_state.h"
#include "record/rotation.h"
#include "record/session_flush.h"
#include "record/session_report.h"
#include "record/session_size.h"
#include "signal/ticks.h"
#include "trace/span.h"

gp_ticks_scale_t gp_ticks_scale = {.mult = 1ull << 32};

static struct disk { // what is so, and what was done
    bool is_slow, is_full_size, is_time_to_turn, has_name;
    size_t pending;
    unsigned reports, opened, parts, everything;
    int how, end_reason;
} disk;
static gp_record_t record;
static gp_end_record_t end_record;

void *gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes)
{
    (void)writer;
    assert_true(type == GP_CHUNK_END && bytes == sizeof(end_record));
    return &end_record;
}

size_t gp_writer_pending(const gp_writer_t *writer)
{
    (void)writer;
    return disk.pending;
}

void gp_writer_turn(gp_writer_t *writer, const char *aside, const gp_file_header_t *header)
{
    (void)writer, (void)aside, (void)header;
    disk.parts++;
}

void gp_session_report(gp_recording_t *recording, uint64_t now, gp_report_how_t how)
{
    (void)recording, (void)now;
    disk.reports++;
    disk.how = (int)how;
}

bool gp_session_hand_over(gp_recording_t *recording)
{
    (void)recording;
    return !disk.is_slow;
}

void gp_session_report_all(void)
{
    disk.everything++;
}

void gp_session_open_in_child(gp_recording_t *recording)
{
    (void)recording;
    disk.opened++;
}

bool gp_rotation_make_room(const gp_writer_t *writer, char aside[GP_ROTATION_PATH_SIZE])
{
    (void)writer;
    aside[0] = '\0';
    return disk.has_name;
}

bool gp_session_is_time_to_turn(const gp_recording_t *recording, uint64_t now)
{
    (void)recording, (void)now;
    return disk.is_time_to_turn;
}

bool gp_session_is_nearly_full(const gp_recording_t *recording)
{
    (void)recording;
    return disk.is_full_size;
}

uint64_t gp_session_flush_every_ns(void)
{
    return UINT64_MAX; // only what is asked for, or pending, is due
}

bool gp_sampler_has_yielded(void)
{
    return false;
}

uint64_t gp_recording_since(const gp_recording_t *recording, uint64_t ticks)
{
    (void)recording;
    return ticks;
}

#define NOTHING_OF(name, ...)                                                                                          \
    void name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING_OF(gp_session_let_it_write, gp_recording_t *recording)
NOTHING_OF(gp_session_report_turn, void)
NOTHING_OF(gp_rotation_begin, uint64_t now)
NOTHING_OF(gp_recording_definitions, gp_recording_t *recording)
NOTHING_OF(gp_recording_meta, gp_recording_t *recording)
NOTHING_OF(gp_recording_labels, gp_recording_t *recording)
NOTHING_OF(gp_recording_turn, gp_recording_t *recording, unsigned frequency, uint64_t from)
NOTHING_OF(gp_span_each_open, uint64_t now, void (*take)(void *context, const gp_span_mark_t *mark), void *context)
#pragma GCC diagnostic pop

// Requests and findings of a round, and what follows.
typedef struct step {
    int state, ending;
    bool flushes, is_slow;
    bool has_failed, is_full_size, is_time_to_turn, has_no_name;
    size_t pending;
    int next, how; // -1: nothing is reported
    bool asks_on;  // what was asked for is not done yet
    uint32_t reason;
} step_t;

enum {
    MEMORY = GP_RECORD_MEMORY,
    OPEN = GP_RECORD_OPEN,
    TURNING = GP_RECORD_TURNING,
    LAST = GP_RECORD_LAST,
    WRITTEN = GP_RECORD_WRITTEN,
    NEWS = GP_REPORT_NEWS,
    ENDED = GP_REPORT_LAST,
    MUCH = 1 << 20,
};

static void go(const step_t *step, size_t number)
{
    disk = (struct disk){.is_slow = step->is_slow,
                         .is_full_size = step->is_full_size,
                         .is_time_to_turn = step->is_time_to_turn,
                         .has_name = !step->has_no_name,
                         .pending = step->pending,
                         .how = -1};
    end_record = (gp_end_record_t){.reason = UINT32_MAX};
    memset(&record, 0, sizeof(record));
    record.state = step->state;
    record.ending = step->ending;
    record.flushing = step->flushes;
    record.recording.writer.error = step->has_failed ? -28 : 0;
    gp_record_round_begins(&record);
    gp_record_round_ends(&record);
    bool asks = record.ending != GP_ENDING_NOT || record.flushing;
    if ((int)gp_record_state_of(&record) != step->next || disk.how != step->how || asks != step->asks_on ||
        (step->how > NEWS && end_record.reason != step->reason))
        fail_msg("step %zu: state %d, how %d, asks %d, reason %u", number, record.state, disk.how, asks,
                 end_record.reason);
}

static void each_step(void **state)
{
    static const step_t steps[] = {
        {.state = GP_RECORD_ABSENT, .next = GP_RECORD_ABSENT, .how = -1},
        // Nothing is due.
        {.state = OPEN, .next = OPEN, .how = -1},
        {.state = MEMORY, .next = MEMORY, .how = -1},
        {.state = TURNING, .next = TURNING, .how = -1},
        // Much is pending, or all of it is asked for.
        {.state = OPEN, .pending = MUCH, .next = OPEN, .how = NEWS},
        {.state = MEMORY, .pending = MUCH, .next = OPEN, .how = NEWS},
        {.state = OPEN, .flushes = true, .next = OPEN, .how = NEWS},
        {.state = OPEN, .flushes = true, .is_slow = true, .next = OPEN, .how = NEWS, .asks_on = true},
        // A child that did nothing has no file, but where it was asked for.
        {.state = MEMORY, .flushes = true, .next = MEMORY, .how = -1},
        {.state = MEMORY, .ending = GP_ENDING_EXIT, .next = MEMORY, .how = -1},
        {.state = MEMORY, .ending = GP_ENDING_ASKED, .next = WRITTEN, .how = ENDED, .reason = GP_END_ASKED},
        // The end.
        {.state = OPEN, .ending = GP_ENDING_ASKED, .next = WRITTEN, .how = ENDED, .reason = GP_END_ASKED},
        {.state = OPEN, .ending = GP_ENDING_ASKED, .is_slow = true, .next = LAST, .how = ENDED, .reason = GP_END_ASKED},
        {.state = OPEN, .pending = MUCH, .is_full_size = true, .next = WRITTEN, .how = ENDED, .reason = GP_END_FULL},
        {.state = OPEN, .ending = GP_ENDING_EXIT, .next = OPEN, .how = ENDED, .reason = GP_END_EXIT},
        {.state = OPEN, .ending = GP_ENDING_EXEC, .next = OPEN, .how = ENDED, .reason = GP_END_EXEC},
        {.state = TURNING, .ending = GP_ENDING_EXIT, .next = OPEN, .how = ENDED, .reason = GP_END_EXIT},
        {.state = LAST, .is_slow = true, .next = LAST, .how = -1},
        {.state = LAST, .next = WRITTEN, .how = -1},
        {.state = WRITTEN, .ending = GP_ENDING_EXIT, .flushes = true, .next = WRITTEN, .how = -1},
        // A file that takes nothing more: the recording ends if the program goes on, and is left if the program ends.
        {.state = OPEN, .pending = MUCH, .has_failed = true, .next = WRITTEN, .how = -1},
        {.state = TURNING, .pending = MUCH, .has_failed = true, .next = WRITTEN, .how = -1},
        {.state = OPEN, .ending = GP_ENDING_EXIT, .has_failed = true, .next = OPEN, .how = -1},
        // A part; a flush that is asked for comes before it. Without a name for the part, that is the end.
        {.state = OPEN,
         .pending = MUCH,
         .is_time_to_turn = true,
         .next = OPEN,
         .how = GP_REPORT_TURN,
         .reason = GP_END_TURNED},
        {.state = OPEN, .flushes = true, .is_time_to_turn = true, .next = OPEN, .how = NEWS},
        {.state = OPEN,
         .pending = MUCH,
         .is_time_to_turn = true,
         .is_slow = true,
         .next = TURNING,
         .how = GP_REPORT_TURN,
         .reason = GP_END_TURNED},
        {.state = OPEN,
         .pending = MUCH,
         .is_time_to_turn = true,
         .has_no_name = true,
         .next = WRITTEN,
         .how = GP_REPORT_TURN,
         .reason = GP_END_TURNED},
        {.state = TURNING, .pending = MUCH, .is_slow = true, .next = TURNING, .how = -1},
        {.state = TURNING, .pending = MUCH, .next = OPEN, .how = -1},
        {.state = TURNING, .pending = MUCH, .has_no_name = true, .next = WRITTEN, .how = -1},
        {.state = GP_RECORD_LEAVING, .flushes = true, .next = GP_RECORD_LEAVING, .how = -1, .asks_on = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        go(&steps[i], i);
}

// A request that comes while a round is on its way is the next one's.
static void what_is_asked_for_meanwhile(void **state)
{
    (void)state;
    memset(&record, 0, sizeof(record));
    disk = (struct disk){.pending = MUCH};
    record.state = OPEN;
    gp_record_round_begins(&record);
    record.ending = GP_ENDING_EXIT;
    record.flushing = true;
    gp_record_round_ends(&record);
    assert_true(record.ending == GP_ENDING_EXIT && record.flushing);
    gp_record_round_begins(&record);
    gp_record_round_ends(&record);
    assert_true(record.ending == GP_ENDING_NOT && !record.flushing);
    assert_int_equal(disk.everything, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step),
        cmocka_unit_test(what_is_asked_for_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
