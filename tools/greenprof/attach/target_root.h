// SPDX-License-Identifier: MIT
// The files of another process, which may have another root directory or other mounts: in a container.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// The path of "root", "cwd", "ns/mnt" and the like of a process: those of /proc/PID are empty once its main thread has
// ended, those of another thread of its are then taken.
enum { GP_TARGET_ENTRY_SIZE = 80 };
void gp_target_path(pid_t pid, const char *name, char path[GP_TARGET_ENTRY_SIZE]);

// Open a file as the process would: links that begin with "/" begin at its root directory.
// Returns a descriptor, or -1 and errno.
int gp_target_root_open(pid_t pid, const char *path, int flags);

// The same for a regular file that is read, and nothing else is opened. Returns as gp_regular_file_open().
int gp_target_root_read(pid_t pid, const char *path);

// Does the process have our file by this path: the same one, or one of the same bytes?
bool gp_target_root_has_copy(pid_t pid, const char *path);

// Does it have /proc?
bool gp_target_root_has_proc(pid_t pid);
