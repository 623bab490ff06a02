// SPDX-License-Identifier: MIT
// Checks and preparations of `greenprof run`, before it becomes the program.
#pragma once

#include <limits.h>
#include <stdbool.h>

enum { GP_RUN_SESSION_SIZE = 33 };

// Make the capture's absolute path, and check that it can be written there.
//   output:  as given, NULL = made from the program's name.
//   program: as given.
// Returns 0 or an exit status, with a message.
int gp_run_output_path(const char *output, const char *program, char path[PATH_MAX]);

// Put away the capture of an earlier run, right before the program is started: should nothing be recorded, it must not
// pass for new. The old one is FILE.old from then on.
//   path: as gp_run_output_path() made it.
// Returns 0 or an exit status, with a message.
int gp_run_put_old_away(const char *path);

// Take it back: the program was not started.
void gp_run_take_old_back(void);

// Check that an engine can be had; NULL and "" are the first that works.
// Returns 0 or an exit status, with a message.
int gp_run_check_engine(const char *engine);

// The path as this process will write it: %p replaced. Returns -1 when it is too long.
int gp_run_replace_pid(const char *path, char out[PATH_MAX]);

// Look a program up as execvp() does. Returns 0, EXIT_NOT_FOUND or EXIT_NOT_EXECUTABLE; `path` is
// filled unless not found.
int gp_run_find_program(const char *program, char path[PATH_MAX]);

// Check that the program exists, can be executed and will load a preloaded library.
//   is_musl: set where the library must be for musl. NULL = such a program is refused.
// Returns 0 or an exit status, with a message.
int gp_run_check_program(const char *program, bool *is_musl);

// Find libgreenprof-core.so.0: $GREENPROF_CORE, else where it is installed or built beside this
// command; musl's in greenprof/musl below there.
//   program: for the message, where there is none for musl.
// Returns 0 or an exit status, with a message.
int gp_run_find_core(const char *program, bool is_musl, char path[PATH_MAX]);

// Make a session id: 32 random hex digits.
void gp_run_session(char text[GP_RUN_SESSION_SIZE]);
