// SPDX-License-Identifier: MIT
// How soon what happens is in the capture, and in a ring file (ring_file.h) before that.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/recording.h"

// Take the flush times from the settings of the recording that begins.
void gp_session_flush_set(void);

// Between two hand-overs to the writer.
uint64_t gp_session_flush_every_ns(void);

// Make the ring file, where there is to be one, before anything is sampled for the recording. is_late: the program runs
// already.
void gp_session_rings_make(gp_recording_t *recording, bool is_late);

// Why the latest recording has none, though it was to have one: a negative errno value; 0 = it has, or was not.
int gp_session_rings_error(void);

// Open the capture of a forked child, and make the ring file: most children become another program before they have
// a capture. Caller holds the drain lock.
void gp_session_open_in_child(gp_recording_t *recording);

// Wait until the rings have left the ring file, unless that is_left already; for a while at most. No lock is held.
void gp_session_rings_leave(bool is_left);
