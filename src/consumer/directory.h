// SPDX-License-Identifier: MIT
// Directories and files that only this user can read, and no link in their place is followed.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"

// Open a directory, made where there is none. Returns a descriptor or a negative errno value: -ENOTDIR or -ELOOP for a
// link in its place.
static inline int gp_directory_open(int parent, const char *path)
{
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW };
    int fd = gp_descriptor_open(parent, path, FLAGS, 0);
    if (fd >= 0 || errno != ENOENT)
        return fd >= 0 ? fd : -errno;
    if (mkdirat(parent, path, 0700) != 0 && errno != EEXIST)
        return -errno;
    fd = gp_descriptor_open(parent, path, FLAGS, 0);
    return fd >= 0 ? fd : -errno;
}

// Is it a file of this user's own, under one name?
static inline bool gp_directory_is_own_file(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == geteuid() && stat.st_nlink == 1;
}

// May only this user, and root, change what is in it?
static inline bool gp_directory_is_private(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && stat.st_uid == geteuid() && (stat.st_mode & 022) == 0;
}
