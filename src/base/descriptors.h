// SPDX-License-Identifier: MIT
// Where the descriptors of greenprof's own are: at the upper end of what the host may have, and above those that
// select() can take. The low ones are the host's: it may count on their numbers, and close all of them as a daemon
// does.
//
// Signals: safe.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    GP_DESCRIPTORS_HOST = 2048, // the host's at least, where it may have so many
    GP_DESCRIPTORS_PART = 4,    // else all but this part
};

enum { GP_DESCRIPTORS_KNOWN = 1 << 20 };

// Numbers that one of greenprof's own has had, a bit each. For good: a hint.
extern _Atomic uint64_t gp_descriptors_raised[GP_DESCRIPTORS_KNOWN / 64] __attribute__((visibility("hidden")));

static inline bool gp_descriptor_was_raised(int fd)
{
    return fd >= 0 && fd < GP_DESCRIPTORS_KNOWN &&
           (atomic_load_explicit(&gp_descriptors_raised[fd / 64], memory_order_relaxed) >> fd % 64 & 1) != 0;
}

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
    if (high < GP_DESCRIPTORS_KNOWN)
        atomic_fetch_or_explicit(&gp_descriptors_raised[high / 64], UINT64_C(1) << high % 64, memory_order_relaxed);
    return high;
}
