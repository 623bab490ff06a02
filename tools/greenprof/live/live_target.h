// SPDX-License-Identifier: MIT
// A live process that is to be asked something, and the directories in which it may be met (live/census_place.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "live/census_place.h"

typedef struct gp_target {
    pid_t pid;
    uid_t uid;       // effective
    int own_pid;     // as the process itself sees it
    uint64_t start;  // proc_pid_stat(5)
    uint64_t caught; // signals that it handles
} gp_target_t;

// Find a process, and see whether the calling user may ask it.
//   subject: for messages.
// Returns 0 or EXIT_FAILED, with a message.
int gp_target_find(gp_target_t *target, pid_t pid, const char *subject);

// Find a process by its name, as ps shows it.
//   pid: one of them.
// Returns how many processes of this user have the name; this one does not count.
size_t gp_target_named(const char *name, pid_t *pid);

// Is the process still there, and the same? Is it stopped, by a signal or a debugger?
bool gp_target_is_there(const gp_target_t *target);
bool gp_target_is_stopped(const gp_target_t *target);

// Did it begin at this time, in ticks as proc_pid_stat(5) shows them to the process itself? In a time name space of its
// that is another number than here.
bool gp_target_began_at(const gp_target_t *target, uint64_t ticks);

// Does a path mean another file to the process, in another mount namespace, or with another root directory in this one?
bool gp_target_has_other_root(const gp_target_t *target);

// Does it know users by other numbers, in a user name space of its own?
bool gp_target_has_other_users(const gp_target_t *target);

// A file of /proc/PID, ended by a 0. Returns whether there was something to read.
bool gp_target_read(pid_t pid, const char *name, char *text, size_t size, size_t *length);

// The last number of a line of /proc/PID/status: the innermost of nested name spaces.
int gp_target_last_number(const char *status, const char *key);

// Look into one directory after the other until `look` returns true: it has the descriptor then.
bool gp_target_each_place(const gp_target_t *target, gp_census_place_look_t *look, void *argument);
