// SPDX-License-Identifier: MIT
// Where a process and `greenprof coroutines PID` meet: a directory that is the user's alone.
//
// Model: $XDG_RUNTIME_DIR/greenprof, else /tmp/greenprof-UID, mode 0700, owned by the user; anything else of that name
// is refused. A process that is being sampled leaves a marker there, PID, that says by which signal it may be
// asked and which of its threads takes it: the collector's, so that no thread of the program is ever disturbed, and
// nothing is sent to a process, or to a program that it became by exec, that would not understand. Its answer is the
// file census-PID-NUMBER in the same directory. Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GP_PLACE_SIZE = 512 };

typedef struct gp_census_marker { // all as the process itself sees it
    int pid, tid, signal_number;
    uint64_t name_space; // of process ids: what the numbers mean
    uint64_t start;      // when the process started, clock ticks since boot: proc_pid_stat(5)
} gp_census_marker_t;

// The directory's path. runtime: $XDG_RUNTIME_DIR; NULL = /tmp. Returns whether there is room, and `runtime` is
// absolute.
bool gp_census_place(const char *runtime, uid_t uid, char *path, size_t size);

// Open it. Returns the descriptor; -EPERM where it is not the user's alone, or another negative errno value.
int gp_census_place_open(const char *path, uid_t uid);

// The same for a directory that is open: closed where it is not the user's alone. -1 = it could not be, errno says why.
int gp_census_place_take(int fd, uid_t uid);

// Write and read markers. Return 0 or a negative errno value, -EBADMSG for what is none.
int gp_census_marker_write(int directory, const gp_census_marker_t *marker);
int gp_census_marker_read(int directory, int pid, gp_census_marker_t *marker);

// The calling process' name space of process ids; 0 = not known.
uint64_t gp_census_name_space(void);

// Remove markers of processes of this name space that are gone.
void gp_census_place_tidy(const char *path, uid_t uid);

// The start time in /proc/PID/stat's text; 0 = there is none.
uint64_t gp_census_start_time(const char *stat);

void gp_census_answer_name(int pid, uint32_t number, char *name, size_t size);
