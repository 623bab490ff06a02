// SPDX-License-Identifier: MIT
// Regular reports of a capture: ledgers, waits, threads, counters, live coroutines. Looking at all of them takes time,
// so each is done as often as its price allows, in pieces. Collector only, under the drain lock.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counters.h"
#include "record/recording.h"
#include "signal/thread.h"

typedef enum gp_report_how {
    GP_REPORT_NEWS,
    GP_REPORT_TURN, // the last of this file: the next one goes on with open activities
    GP_REPORT_LAST, // of the recording, with what is open
} gp_report_how_t;

void gp_session_report(gp_recording_t *recording, uint64_t now, gp_report_how_t how);

// A thread asleep with a coroutine on it: the coroutine's ledger has this time as preempted, until it wakes up. Report
// this time as sleep, if it is long or wanted; then the sleep is sampled up to now as well.
void gp_session_report_sleep(gp_recording_t *recording, gp_thread_t *thread, bool is_wanted);

// Hand over all records, and all they refer to. Returns false where what was handed over before is not written yet.
bool gp_session_hand_over(gp_recording_t *recording);

// Give the writing thread some time. The lock is not held meanwhile.
void gp_session_let_it_write(gp_recording_t *recording);

// Bytes of records that were handed over, in all; live coroutines, of the latest look at all of them.
uint64_t gp_session_handed_over_bytes(void);
size_t gp_session_live_coros(void);

// Add what the writer had no room for, and is not written again later.
void gp_session_count_refused(const gp_recording_t *recording, uint64_t counters[GP_COUNTER_COUNT]);

// The process' CPU time counts from now on.
void gp_session_report_start(void);

// The same for a capture begun later in a process: nothing from before is reported.
void gp_session_report_anew(void);

// The next file goes on where the last report ended.
void gp_session_report_turn(void);

// Set how often all is looked at, where its price allows; at most every 200 ms, the initial value.
void gp_session_report_within(uint64_t ns);

// Recording is about to rest: what goes on now is reported as far as it went, where its price allows.
void gp_session_report_before_rest(gp_recording_t *recording);

// Let the next report have everything, whatever it costs.
void gp_session_report_all(void);

// Counts since the capture began.
void gp_session_counters(uint64_t counters[GP_COUNTER_COUNT]);

// Greenprof's part of the CPU time (own_cost.h), up to the latest report; 0 = the program used too little to tell.
//   counters: as of gp_session_counters().
double gp_session_report_own_share(const uint64_t counters[GP_COUNTER_COUNT]);

// In a forked child: nothing has been reported, and its CPU time counts from its start.
void gp_session_report_in_child(void);
