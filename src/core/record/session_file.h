// SPDX-License-Identifier: MIT
// Which file this process' capture is written to, and how.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "live/control_protocol.h"
#include "record/recording.h"

typedef struct gp_session_wish {     // beyond the environment; all zero = nothing
    bool is_asked;                   // by a command or a signal, not by the environment
    int pid;                         // of the process that was asked
    unsigned frequency_hz;           // 0 = as the environment says
    unsigned flush_ms;               // 0 = as the environment says
    int clock;                       // enum prof_clock, -1 = as the environment says
    bool makes_directory;            // again, where it is gone as a child begins its file
    int lent;                        // a descriptor of the file, which is the asked process' alone; 0 = none
    char path[GP_CONTROL_PATH_SIZE]; // "" = GREENPROF_OUTPUT; no file that is there is replaced then
} gp_session_wish_t;

// Set the wish from now on, for the children as well.
void gp_session_set_wish(const gp_session_wish_t *wish);

// Samples a second.
unsigned gp_session_frequency(void);
bool gp_session_frequency_is_chosen(void);

// How soon what happened is to be in the file, as it was asked for; 0 = it was not.
uint64_t gp_session_flush_within_ns(void);

// Its path, as gp_session_open_now() makes it. Returns whether there is one, and room.
bool gp_session_path(gp_recording_t *recording, char *path, size_t size);

// Begin the recording's file: at once, or by the writing thread, which may take as long as the file system pleases.
// Returns 0 or a negative errno value.
int gp_session_open_now(gp_recording_t *recording, unsigned frequency_hz);
void gp_session_open_later(gp_recording_t *recording);

// A new descriptor of the recording's file, by which it is known; -1 = there is none, or it is being written just now.
int gp_session_file_descriptor(const gp_recording_t *recording);

// Begin the recording in memory.
void gp_session_begin_recording(gp_recording_t *recording, unsigned frequency_hz);
