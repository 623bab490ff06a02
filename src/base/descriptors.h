// SPDX-License-Identifier: MIT
// Where the descriptors of greenprof's own are: at the upper end of what the host may have, and above those that
// select() can take. The low ones are the host's: it may count on their numbers, and close all of them as a daemon
// does.
//
// A new descriptor has the lowest number for a moment. The program may close this number without knowing it, or take it
// by dup2(): its next file would have the number about to be closed. So the moment is told, and the program's close()
// and dup2() wait for its end (process/host_close.c).
//
// Signals: safe.
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/raw_call.h"

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

// How many threads have a descriptor of greenprof's among the host's numbers, for a moment; how many close one of the
// host's. Each counts itself first, and then looks at the other: one of two that meet sees so, and waits.
extern _Atomic unsigned gp_descriptors_low __attribute__((visibility("hidden")));
extern _Atomic unsigned gp_descriptors_closing __attribute__((visibility("hidden")));

// Who waited too long has set it to 0: a handler of the program's may have left by siglongjmp().
static inline void gp_descriptor_count_down(_Atomic unsigned *count)
{
    unsigned seen = atomic_load_explicit(count, memory_order_relaxed);
    while (seen != 0 &&
           !atomic_compare_exchange_weak_explicit(count, &seen, seen - 1, memory_order_acq_rel, memory_order_relaxed))
        ;
}

// The pause of a thread that meets another, as long as the other may wait for a processor: 1 s. Then the other has left
// the moment in another way, or hangs in a file system, and is not waited for.
enum { GP_DESCRIPTORS_PAUSE_NS = 50000, GP_DESCRIPTORS_PAUSES = 10000 };

static inline void gp_descriptor_pause(void)
{
    const struct timespec pause = {.tv_nsec = GP_DESCRIPTORS_PAUSE_NS};
    gp_raw_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0);
}

// A close takes less than a microsecond, where its thread has a processor.
static inline void gp_descriptor_low_begins(void)
{
    enum { SPINS = 20000 };
    atomic_fetch_add_explicit(&gp_descriptors_low, 1, memory_order_seq_cst);
    for (int i = 0; i < SPINS + GP_DESCRIPTORS_PAUSES; i++) {
        if (atomic_load_explicit(&gp_descriptors_closing, memory_order_seq_cst) == 0)
            return;
        if (i >= SPINS)
            gp_descriptor_pause();
    }
    atomic_store_explicit(&gp_descriptors_closing, 0, memory_order_relaxed);
}

static inline void gp_descriptor_low_ends(void)
{
    gp_descriptor_count_down(&gp_descriptors_low);
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
    int lowest = gp_descriptor_floor(), high = fd >= lowest ? fd : fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (high < 0)
        return -EMFILE;
    if (high != fd)
        syscall(SYS_close, fd);
    if (high < GP_DESCRIPTORS_KNOWN)
        atomic_fetch_or_explicit(&gp_descriptors_raised[high / 64], UINT64_C(1) << high % 64, memory_order_relaxed);
    return high;
}

// Move a descriptor made since gp_descriptor_low_begins() to high numbers, where there is room. Returns `fd` where it
// is negative.
static inline int gp_descriptor_lift(int fd)
{
    int saved = errno, high = fd >= 0 ? gp_descriptor_raise(fd) : fd;
    gp_descriptor_low_ends();
    errno = saved;
    return high >= 0 ? high : fd;
}

// As openat(2), with O_CLOEXEC, up there where there is room. Not a cancellation point.
static inline int gp_descriptor_open(int directory, const char *path, int flags, unsigned mode)
{
    gp_descriptor_low_begins();
    return gp_descriptor_lift((int)syscall(SYS_openat, directory, path, flags | O_CLOEXEC, mode));
}

// As fopen(3) for reading. NULL and errno on failure.
static inline FILE *gp_descriptor_file(const char *path)
{
    int fd = gp_descriptor_open(AT_FDCWD, path, O_RDONLY, 0);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL && fd >= 0)
        syscall(SYS_close, fd);
    return file;
}

// As opendir(3). NULL and errno on failure.
static inline DIR *gp_descriptor_entries(int directory, const char *path)
{
    int fd = gp_descriptor_open(directory, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (entries == NULL && fd >= 0)
        syscall(SYS_close, fd);
    return entries;
}
