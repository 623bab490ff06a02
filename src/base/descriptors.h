// SPDX-License-Identifier: MIT
// Where the descriptors of greenprof's own are: at the upper end of what the host may have, and above those that
// select() can take. The low ones are the host's: it may count on their numbers, and close all of them as a daemon
// does.
//
// Signals: safe.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    GP_DESCRIPTORS_HOST = 2048, // the host's at least, where it may have so many
    GP_DESCRIPTORS_PART = 4,    // else all but this part
};

// The lowest number for one of greenprof's own, under the present limit.
static inline int gp_descriptor_floor(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= 2 * GP_DESCRIPTORS_HOST)
        return GP_DESCRIPTORS_HOST;
    return (int)(limit.rlim_cur - limit.rlim_cur / GP_DESCRIPTORS_PART);
}

// Move a descriptor of greenprof's own up there: `fd` is closed, unless there is no room. Not by close(), which is a
// cancellation point: locks may be held. Returns the new one, or -EMFILE.
static inline int gp_descriptor_raise(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, gp_descriptor_floor());
    if (high < 0)
        return -EMFILE;
    syscall(SYS_close, fd);
    return high;
}
