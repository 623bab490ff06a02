// SPDX-License-Identifier: MIT
// The ring file (capture/ring_file.h) of this process: records not in its capture yet outlive it there, however long
// the collector had no CPU.
//
// Model: made for a recording to be written soon (GREENPROF_FLUSH_MS, `--flush`): at load before anything is sampled,
// at a later begin, in a forked child when its capture is opened. Rings of threads that run come to be in it within
// some rounds. gp_ring_file_note() before each hand-over to the writer; unlinked when the recording ends in order, and
// unmapped as soon as all rings have left it. Threads beyond GP_RING_FILE_SLOTS have rings of their own memory, and
// lose what the collector had no time for. Caller holds the drain lock. Signals: not safe, unless said otherwise.
#pragma once

#include "record/recording.h"

// Make it beside a capture that is about to be made. All of it is allocated: no access fails for a full disk.
// Returns 0 or a negative errno value: -EOPNOTSUPP where the file system is none of a machine's own disks or memory,
// -EBUSY where the one before is not left yet.
int gp_ring_file_begin(const char *capture);

// Bring rings nearer to where they are to be. After each round.
void gp_ring_file_round(void);

// Records read from the rings so far are handed over next. The writer is not busy.
void gp_ring_file_note(const gp_recording_t *recording);

// Kept records of the thread's ring give way now: those not in the capture for certain go to the file's store, as far
// as there is room. Caller holds the drain lock.
void gp_ring_file_put_aside(gp_thread_t *thread, const gp_recording_t *recording);

// The recording is whole. No lock is needed. Signals: safe
void gp_ring_file_unlink(void);

// The same, and nothing is kept any more. Returns whether nothing is left of it; else to be called again, or
// gp_ring_file_round().
bool gp_ring_file_end(void);

// In a forked child: it is the parent's. No lock is needed.
void gp_ring_file_in_child(void);
