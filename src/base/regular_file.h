// SPDX-License-Identifier: MIT
// Opening what another has named, or put by a name, for reading: a regular file, or nothing. A device may do something
// by being opened alone (a watchdog), a pipe waits for a writer; so it is judged before it is opened.
//
// Signals: safe; changes errno.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"

// A file open with O_PATH, opened for reading. Returns a descriptor, -ENOEXEC where it is no regular file, or another
// negative errno value.
static inline int gp_regular_file_of(int seen)
{
    char link[40];
    struct stat status;
    if (fstat(seen, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -ENOEXEC;
    snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", seen);
    int fd = gp_descriptor_open(AT_FDCWD, link, O_RDONLY | O_NONBLOCK, 0);
    return fd >= 0 ? fd : -errno;
}

// Open it. Returns as gp_regular_file_of().
//   directory: that `path` begins in; AT_FDCWD as for openat(2).
//   flags:     O_NOFOLLOW, or 0.
static inline int gp_regular_file_open(int directory, const char *path, int flags)
{
    int seen = gp_descriptor_open(directory, path, O_PATH | flags, 0);
    if (seen < 0)
        return -errno;
    int fd = gp_regular_file_of(seen);
    close(seen);
    if (fd != -ENOENT)
        return fd;
    fd = gp_descriptor_open(directory, path, O_RDONLY | O_NONBLOCK | flags,
                            0); // there is no /proc, and it was a file just now
    return fd >= 0 ? fd : -errno;
}
