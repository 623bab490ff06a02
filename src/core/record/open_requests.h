// SPDX-License-Identifier: MIT
// Requests open while a capture is written: they matter where a process is killed, or looked at while it hangs.
//
// Model: an open span is written once it has lasted for a while, and again with each step of its age, so the capture is
// behind by a fifth of its age at most, or so. From 0.2 s on, what the coroutines of its trace are in the middle of is
// written as well, up to the same moment or a little later: the slice or the wait that goes on
// (gp_open_activity_record_t), with samples of where they wait, or sleep on their threads, so far. A reader takes it
// only where no record says how it ended, so nothing is counted twice.
//
// Collector only, under the drain lock. Signals: not safe.
#pragma once

#include "record/recording.h"

// Look at all coroutines, in pieces: the lock may be given away between two.
typedef void gp_session_scan_t(gp_recording_t *recording, void (*visit)(prof_coro_t *coro, void *argument),
                               void *argument);

// Write what is due. now: CLOCK_MONOTONIC. least_ns: between two looks, and of a span's age.
// Cost: twice the open spans, and where one of them is due, two looks at all coroutines; each at most 1/100 of the
// time, so many coroutines are looked at less often than spans.
void gp_session_open_report(gp_recording_t *recording, uint64_t now, uint64_t least_ns, gp_session_scan_t *scan);

// All of them are due, at the next report; `whatever_it_costs`: with all their waits, of which else so many are sampled
// at a time as 20 ms are enough for.
void gp_session_open_report_all(bool whatever_it_costs);
