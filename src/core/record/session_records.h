// SPDX-License-Identifier: MIT
// Events as records of this process' capture. Collector only, under the drain lock.
#pragma once

#include "collect/sink.h"
#include "record/recording.h"

// The sink's functions: see collect/sink.h.
void gp_session_take_sample(gp_recording_t *recording, const gp_sample_t *sample, gp_thread_t *thread,
                            const gp_stack_t *stack, const gp_share_t *shares, size_t count);
void gp_session_take_hog(gp_recording_t *recording, const gp_hog_mark_t *mark, gp_thread_t *thread,
                         const gp_hog_sample_t *samples, size_t count);
void gp_session_take_delay(gp_recording_t *recording, const gp_delay_mark_t *mark, gp_thread_t *thread);
void gp_session_take_activity(gp_recording_t *recording, const gp_activity_mark_t *mark, gp_thread_t *thread);
void gp_session_take_trace_mark(gp_recording_t *recording, const gp_trace_mark_t *mark);
void gp_session_take_span(gp_recording_t *recording, const gp_span_mark_t *mark);
void gp_session_take_coro_over(gp_recording_t *recording, prof_coro_t *coro);

// A span that is open.
void gp_session_take_open_span(gp_recording_t *recording, const gp_span_mark_t *mark);
void gp_session_take_thread(gp_recording_t *recording, gp_thread_t *thread);

// The last activity of a coroutine.
void gp_session_take_last_activity(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, uint64_t now);

// The same where it goes on.
void gp_session_take_open_activity(gp_recording_t *recording, const gp_activity_mark_t *mark);

// The ledger of an ordinary thread's own stack up to `now` (ticks), its time off the CPU divided. Returns whether it is
// one.
bool gp_session_read_ledger(prof_coro_t *coro, uint64_t id, uint64_t now, gp_ledger_t *ledger);

// Report the growth of a coroutine's ledger since the last report. Returns false where there is no room for it: it is
// more the next time.
bool gp_session_report_ledger(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, const gp_ledger_t *now);

// The same where there is no next time, or it would be said of another trace: counted where there is no room.
void gp_session_report_last_ledger(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, const gp_ledger_t *last);

// Write a renamed coroutine again, whatever it does.
void gp_session_report_name(gp_recording_t *recording, prof_coro_t *coro, uint64_t id);
