// SPDX-License-Identifier: MIT
// The ring file (capture/ring_file.h) of this process: what its threads recorded, and its capture does not have yet,
// outlives it there, however long the collector had no CPU.
//
// Model: made when the recording that begins at load is to be written soon (GREENPROF_FLUSH_MS), before anything is
// sampled. gp_ring_file_note() before each hand-over to the writer; unlinked when the recording ends in order. One a
// process and life: later recordings, forked children, threads that were there before the library and those beyond
// GP_RING_FILE_SLOTS have rings of their own memory, and lose what the collector had no time for.
// Signals: not safe, unless said otherwise.
#pragma once

#include "session/recording.h"

// Make it beside a capture that is about to be made. All of it is allocated: no access fails for a full disk.
// Returns 0 or a negative errno value, -EOPNOTSUPP where the file system is none of a machine's own disks or memory.
int gp_ring_file_begin(const char *capture);

// What was read of the rings so far is handed over next. Caller holds the drain lock, and the writer is not busy.
void gp_ring_file_note(const gp_recording_t *recording);

// What the thread's ring keeps gives way now: what of it the capture does not have for certain goes to the file's
// store, as far as there is room. Caller holds the drain lock.
void gp_ring_file_put_aside(gp_thread_t *thread, const gp_recording_t *recording);

// The recording is whole. Signals: safe
void gp_ring_file_unlink(void);

// The same, and nothing is kept any more. Caller holds the drain lock.
void gp_ring_file_end(void);

// In a forked child: it is the parent's.
void gp_ring_file_in_child(void);
