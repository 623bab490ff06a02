// SPDX-License-Identifier: MIT
// Where a process and `greenprof coroutines PID` meet: a directory that is the user's alone.
//
// Model: $XDG_RUNTIME_DIR/greenprof, else /tmp/greenprof-UID, mode 0700, owned by the user, no link; anything else of
// that name is passed over. Anyone may make the latter first, so there is a third place: /tmp/greenprof-UID.XXXXXX, by
// a name that no other user can foresee; its owner finds it. A sampled process leaves a marker there, PID: by which
// signal it may be asked, and by which thread it is taken: the collector's, so that no thread of the program is ever
// disturbed. Nothing is sent to a process, or a program after its exec, that would not understand. Its answer is the
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

// Find, or make, the first place that will do for the calling process: its effective user, its environment.
//   path: char[GP_PLACE_SIZE], what it is called.
// Returns a descriptor, or a negative errno value.
int gp_census_place_make(char *path);

// Call `look` with each place of a user below a directory that is open, until it returns true: it has the descriptor
// then. Returns whether it did.
//   is_runtime: the directory is $XDG_RUNTIME_DIR, else /tmp.
//   name, uid:  of the user, as the process and as the caller have it.
typedef bool gp_census_place_look_t(int directory, void *argument);
bool gp_census_place_each(int parent, bool is_runtime, uid_t name, uid_t uid, gp_census_place_look_t *look,
                          void *argument);

// Write and read markers. Return 0 or a negative errno value, -EBADMSG for what is none.
int gp_census_marker_write(int directory, const gp_census_marker_t *marker);
int gp_census_marker_read(int directory, int pid, gp_census_marker_t *marker);

// The calling process' name space of process ids; 0 = not known.
uint64_t gp_census_name_space(void);

// Remove markers of processes of this name space that are gone.
void gp_census_place_tidy(int directory);

// The start time in /proc/PID/stat's text; 0 = there is none.
uint64_t gp_census_start_time(const char *stat);

void gp_census_answer_name(int pid, uint32_t number, char *name, size_t size);
