// SPDX-License-Identifier: MIT
// The capture of a whole process: what `greenprof run` starts through the environment.
#pragma once

#include <stdbool.h>

#include "live/control_protocol.h"
#include "record/session_file.h"

// Start the capture that the environment asks for, on the main thread as it is loaded. Returns 0 or a negative errno
// value.
int gp_session_start(void);

// Switching while the process runs; one thread of greenprof's own may call these.
//
// Begin a capture. Returns 0, -EALREADY where there is one, -EAGAIN where the one before is still being ended,
// -EDESTADDRREQ where there is no name for the file, or another negative errno value.
int gp_session_begin(const gp_session_wish_t *wish);

// End the capture, or have everything so far written; returns once it is in the file. Returns 0, -EALREADY where there
// is none, or -ETIMEDOUT: it goes on.
int gp_session_finish(uint64_t limit_ns);
int gp_session_flush(uint64_t limit_ns);

typedef struct gp_session_latest { // the present capture, or the one before
    enum gp_control_state state;
    uint32_t frequency_hz, clock;
    uint64_t start_realtime_ns, start_ns, bytes;
    uint64_t counters[GP_COUNTER_COUNT]; // since it began
    char path[GP_CONTROL_PATH_SIZE];     // "" = there was none
} gp_session_latest_t;

void gp_session_status(gp_session_latest_t *status);

// A new descriptor of the present recording's file, by which it is known; -1 = there is none, or it is being written
// just now.
int gp_session_descriptor(void);

// Events of the process, for the capture if there is one. In a forked child, after sampling was set up anew, under the
// sampler lock; before an exec; and at exit() or _exit(), which may come from a signal handler.
void gp_session_in_child(void);
void gp_session_before_exec(void);
void gp_session_ending(void);

// A sandbox of the program's ends the recording next.
void gp_session_sandboxed(void);

// Wake the writing thread.
void gp_session_wake(void);
