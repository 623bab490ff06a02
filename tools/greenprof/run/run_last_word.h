// SPDX-License-Identifier: MIT
// run: what a capture says of a program that is over and could not say it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "capture/write/end_summary.h"

enum { GP_RUN_UNKNOWN_SIGNAL = -1 };

// Make the closing line.
//   file:   the capture.
//   name:   of it, as the user has it.
//   pid:    of the program: another process' capture does not count.
//   signal: by which the program was killed; 0: it ended by itself; GP_RUN_UNKNOWN_SIGNAL where the kernel does not say
//           how it ended.
// Returns its length. 0: there is nothing to be said, or the program has said it.
size_t gp_run_last_word(char line[GP_CLOSING_LINE_SIZE], const char *file, const char *name, pid_t pid, int signal);
