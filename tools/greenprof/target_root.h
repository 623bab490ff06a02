// SPDX-License-Identifier: MIT
// The files of another process, which may have another root directory or other mounts: in a container.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// Open a file as the process would: links that begin with "/" begin at its root directory.
// Returns a descriptor, or -1 and errno.
int gp_target_root_open(pid_t pid, const char *path, int flags);

// Does it have the file that is ours by this path: the same one, or one of the same bytes?
bool gp_target_root_has_copy(pid_t pid, const char *path);

// Does it have /proc?
bool gp_target_root_has_proc(pid_t pid);
