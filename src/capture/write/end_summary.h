// SPDX-License-Identifier: MIT
// The line that a recording ends with on standard error. Written by the process that was recorded, or where it was
// killed by what `greenprof run` leaves behind; both say it in the same words.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/counters.h"

enum { GP_CLOSING_LINE_SIZE = 4096, GP_CLOSING_NAME_SIZE = 1024 }; // a pipe takes PIPE_BUF = 4096 bytes at once

typedef struct gp_losses { // of a recording
    uint64_t samples;
    uint64_t unsampled_ns; // CPU time without samples, where that is worth a word
    uint64_t spans;        // on their way to the capture, or to a consumer
    uint64_t coroutines;   // times that what a coroutine did could not be written
    uint64_t others;       // waits, long slices, their delays, the timeline's
} gp_losses_t;

//   values: [count]: enum gp_counter.
gp_losses_t gp_losses_of(const uint64_t *values, uint64_t count);

// Make the line: file, samples, losses, next command.
//   name: of the capture, as the user has it.
//   lost: zeros are not named, other than samples.
//   note: more to know, in one clause, behind what it took where that is known; NULL = nothing.
// Returns its length, cut to what fits. Signals: not safe.
size_t gp_end_summary(char line[GP_CLOSING_LINE_SIZE], const char *name, uint64_t samples, const gp_losses_t *lost,
                      const char *note);

// Make the line of a recording that has no ring file (capture/ring_file.h): errno value `error`.
size_t gp_end_summary_no_rings(char line[GP_CLOSING_LINE_SIZE], const char *name, int error);

// Make the line of a recording that is not whole, or missing.
//   what: "nothing", "not all of it". why: in words.
size_t gp_end_summary_failed(char line[GP_CLOSING_LINE_SIZE], const char *name, const char *what, const char *why);

// Why a file ends before its program does, or is not there.
#define GP_CLOSING_SANDBOX "its seccomp filter kills for calls of greenprof's"
#define GP_CLOSING_FULL    "it has the size that it was to have at most"
