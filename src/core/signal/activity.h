// SPDX-License-Identifier: MIT
// The timeline: when a coroutine was active, and when it waited.
//
// Model: slices of a coroutine with short waits between them are one activity: it was active. A wait of at least the
// thread's `activity.least` ends the activity, and activity and wait are reported together when the coroutine is
// switched to again. So nothing is done at a common switch but one comparison. Where a thread tells more than
// GP_ACTIVITIES_PER_SECOND, or than a budget leaves, its `activity.least` is doubled: the timeline gets coarser, but
// has no holes. Each activity says how much of it were slices, exactly. A mark that finds no room in the ring is not
// lost either: the activity goes on through the wait.
#pragma once

#include "signal/sample.h"
#include "signal/thread.h"

// Activities are read: before that, none is reported. Set before sampling starts.
extern _Atomic bool gp_activity_wanted;

enum { GP_ACTIVITIES_PER_SECOND = 5000 };

// Set how many activities a second a thread may tell from now on. Signals: safe.
void gp_activity_set_most(uint32_t per_second);

// A thread's sampling starts. Signals: safe.
void gp_activity_begin(gp_thread_t *thread);

// Another epoch begins, and with it another activity of an older coroutine.
void gp_activity_begin_with_epoch(prof_coro_t *coro);

// The activity of the thread's running coroutine ends here, and the next begins. Signals: not safe.
void gp_activity_cut(gp_thread_t *thread, prof_coro_t *coro, uint64_t now);

// The last activity of a coroutine at its end, or at the process' end. Returns false where it is not known.
bool gp_activity_last(prof_coro_t *coro, uint64_t id, uint64_t now, gp_activity_mark_t *mark);

// The same of one that may go on meanwhile: false also where it is being switched at this moment. Threads: any.
bool gp_activity_open(prof_coro_t *coro, uint64_t id, uint64_t now, gp_activity_mark_t *mark);
