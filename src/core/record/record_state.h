// SPDX-License-Identifier: MIT
// The recording of this process as a state machine: what is done at the end of a round of the collector, by the state
// that the recording is in and by what the round finds.
//
// Collector only, under the drain lock, where nothing else is said. Signals: not safe.
#pragma once

#include <stdatomic.h>

#include "record/recording.h"

// The state changes by rounds, as the table in record_state.c says, and by calls that begin a recording, fork, and take
// back what is over (session.c).
enum gp_record_state {
    GP_RECORD_ABSENT,  // there is none
    GP_RECORD_MEMORY,  // a recording goes on, without a file: a forked child may never need one
    GP_RECORD_OPEN,    // one goes on
    GP_RECORD_TURNING, // the same; the end of a part is not handed over yet
    GP_RECORD_LAST,    // its last is reported, not handed over yet
    GP_RECORD_WRITTEN, // its last is handed over
    GP_RECORD_LEAVING, // nothing of it goes on, and what it asked for is being taken back
    GP_RECORD_STATES,
};

enum gp_record_ending { GP_ENDING_NOT, GP_ENDING_ASKED, GP_ENDING_EXIT, GP_ENDING_EXEC };

typedef struct gp_record {
    gp_recording_t recording;
    _Atomic int state;           // enum gp_record_state
    _Atomic int ending;          // enum gp_record_ending that is asked for, by any thread
    _Atomic bool flushing;       // what there is, is to be written: asked for by any thread
    _Atomic bool is_sandboxed;   // a sandbox of the program's ends it
    enum gp_record_ending ends;  // of these, the present round's: requests during a round are
    bool flushes;                // left to the next one, as this one has taken some of the records before
    bool is_out;                 // all that was reported is handed over
    uint64_t now, last_flush_ns; // CLOCK_MONOTONIC: the present round's end, and the last that reported
    unsigned frequency;
} gp_record_t;

// Any thread.
static inline enum gp_record_state gp_record_state_of(const gp_record_t *record)
{
    // Acquire: partner of the release in gp_record_set_state().
    return (enum gp_record_state)atomic_load_explicit(&record->state, memory_order_acquire);
}

static inline void gp_record_set_state(gp_record_t *record, enum gp_record_state state)
{
    atomic_store_explicit(&record->state, (int)state, memory_order_release);
}

// Is there a recording not taken back yet? Any thread.
static inline bool gp_record_is_there(const gp_record_t *record)
{
    enum gp_record_state state = gp_record_state_of(record);
    return state >= GP_RECORD_MEMORY && state <= GP_RECORD_WRITTEN;
}

// Does one go on? Any thread.
static inline bool gp_record_goes_on(const gp_record_t *record)
{
    enum gp_record_state state = gp_record_state_of(record);
    return state >= GP_RECORD_MEMORY && state <= GP_RECORD_TURNING;
}

void gp_record_round_begins(gp_record_t *record);
void gp_record_round_ends(gp_record_t *record);

// Nothing is asked for any more.
void gp_record_ask_nothing(gp_record_t *record);
