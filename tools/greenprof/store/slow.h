// SPDX-License-Identifier: MIT
// Slow requests and those that hang, while the program runs: `run --slow`, `dump --slow`, and what `ship` needs for it.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "options.h"

typedef struct gp_slow_wish {
    char *url;                // slow+file://DIRECTORY?...
    char directory[PATH_MAX]; // absolute
} gp_slow_wish_t;

// Understand "over=250ms,stuck=5s,keep=100,DIRECTORY", and check the right to write into the directory.
//   command: for messages.
//   now:     whether all open requests are told, unless `text` says otherwise.
// Returns 0 or an exit status, with a message. Free in both cases.
int gp_slow_wish(gp_slow_wish_t *wish, const char *text, const char *command, bool now);
void gp_slow_wish_free(gp_slow_wish_t *wish);

// Write the files of a capture's requests, once.
// Returns 0 or an exit status, with a message.
int gp_slow_once(const gp_slow_wish_t *wish, const char *capture);

// Leave a process behind, which follows the captures of the program in this process' place until the program's end.
//   output: as gp_run_output_path() made it.
// Returns 0 or an exit status, with a message.
int gp_slow_follow(gp_slow_wish_t *wish, const char *output, const gp_arguments_t *arguments);

// See gp_ship_options_t.
bool gp_slow_coroutines(uint32_t pid, const char *capture, const char *trace, int folder, const char *name);
