// SPDX-License-Identifier: MIT
// Directories that stand for the root directory of the profiled processes: a container's unpacked image, or its
// /proc/PID/root. Files are looked for below them, too.
//
// Threads: gp_symfs_add() before anything asks for names; the rest at any time. Signals: not safe.
#pragma once

#include <stddef.h>

enum { GP_SYMFS_MAX = 16 };

// Returns 0, -ENOTDIR, or -ENOSPC where there are GP_SYMFS_MAX of them already; or why it cannot be looked at.
//   directory: not copied.
int gp_symfs_add(const char *directory);

// The path of a process' file below the directory `number`.
// Returns its length; 0 where there is no such directory, or the path is too long.
size_t gp_symfs_path(size_t number, const char *path, char *below, size_t size);

size_t gp_symfs_count(void);
