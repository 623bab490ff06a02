// SPDX-License-Identifier: MIT
// The last line of `greenprof run`, on standard error: file, samples, losses, next command; or that nothing could be
// recorded.
//
// Model: `run` becomes the program, so there is nothing left of it that could say it; the program's process does, as it
// exits. GREENPROF_SAY has what that needs: which file standard error was, and how the user called the capture. The
// line is written only where standard error is still that file and at once ready to take it, and by the process into
// which `run` turned: not by its children, and not into the program's replacement of standard error. No descriptor is
// kept: a reader of a pipe sees its end when the program's own descriptors are closed. After a kill the command says it
// (tools/greenprof/run/run_watch.c).
#pragma once

#include "capture/write/end_summary.h"
#include "model/rested_words.h"
#include "record/recording.h"

typedef struct gp_closing_line {
    uint64_t samples;
    gp_losses_t lost;
    double own_share;                  // of the program's CPU time, that greenprof took
    uint64_t unprofiled;               // children by fork
    unsigned parts;                    // of the recording, before this one
    char rested[GP_RESTED_WORDS_SIZE]; // how much of it was recorded, "" = all
    bool parts_refused;                // there would be more of them
    bool is_sandboxed;                 // it ends before the program does
    bool is_whole;                     // all of it is written
    bool is_full;                      // as far as it may be: the program went on
} gp_closing_line_t;

// Say it, once; the collector's thread, which blocks all signals. Caller holds the drain lock.
void gp_closing_line_say(const gp_recording_t *recording, const gp_closing_line_t *closing);

// Say that nothing is recorded, and why: a negative errno value. The thread that loads the library.
void gp_closing_line_say_failed(int error);

// Say that nothing is recorded, as the process is in a deadly sandbox: by getpid() and write(), and no other system
// call.
void gp_closing_line_say_sandboxed(void);

// Say that there is no ring file (ring_file.h), and why: a negative errno value. The thread that loads the library.
void gp_closing_line_say_no_rings(int error);
