// SPDX-License-Identifier: MIT
// The line that a recording ends with on standard error. Written by the process that was recorded, or where it was
// killed by what `greenprof run` leaves behind; both say it in the same words.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GP_CLOSING_LINE_SIZE = 4096, GP_CLOSING_NAME_SIZE = 1024 }; // a pipe takes PIPE_BUF = 4096 bytes at once

// Make the line: file, samples, losses, next command.
//   name: of the capture, as the user has it.
//   note: what else there is to know, in one clause without ';'; NULL = nothing.
// Returns its length, cut to what fits. Signals: not safe.
size_t gp_closing_line(char line[GP_CLOSING_LINE_SIZE], const char *name, uint64_t samples, uint64_t lost,
                       uint64_t spans_lost, const char *note);

// Make the line of a recording that is not whole, or that there is none of.
//   what: "nothing", "not all of it". why: in words.
size_t gp_closing_line_failed(char line[GP_CLOSING_LINE_SIZE], const char *name, const char *what, const char *why);

// Why a file ends before its program does.
#define GP_CLOSING_FULL "it has the size that it was to have at most"
