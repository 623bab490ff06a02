// SPDX-License-Identifier: MIT
#include "symbol/symfs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *directories[GP_SYMFS_MAX];
static size_t count;

int gp_symfs_add(const char *directory)
{
    struct stat status;
    if (stat(directory, &status) < 0)
        return -errno;
    if (!S_ISDIR(status.st_mode))
        return -ENOTDIR;
    if (count == GP_SYMFS_MAX)
        return -ENOSPC;
    directories[count++] = directory;
    return 0;
}

size_t gp_symfs_path(size_t number, const char *path, char *below, size_t size)
{
    int length = number < count && path[0] == '/' ? snprintf(below, size, "%s%s", directories[number], path) : 0;
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

size_t gp_symfs_count(void)
{
    return count;
}
