// SPDX-License-Identifier: MIT
#include "carried.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "message.h"

enum { COPY_BYTES = 65536, HIGH_FD = 900 };

// Returns the kernel's result, or what kept the call from being made.
static int64_t call(gp_borrowed_t *borrowed, long number, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t arguments[6] = {a, b, c};
    int64_t result = 0;
    int error = gp_borrowed_system_call(borrowed, number, arguments, &result);
    return error != 0 ? error : result;
}

// Returns 0 or a negative errno value.
static int copy_all(int from, int to)
{
    char bytes[COPY_BYTES];
    ssize_t got;
    while ((got = read(from, bytes, sizeof(bytes))) > 0)
        for (ssize_t done = 0, more; done < got; done += more)
            if ((more = write(to, bytes + done, (size_t)(got - done))) <= 0)
                return more < 0 ? -errno : -EIO;
    return got < 0 ? -errno : 0;
}

static int fill(const gp_carried_t *carried, pid_t pid, const char *core)
{
    char theirs[64];
    snprintf(theirs, sizeof(theirs), "/proc/%d/fd/%d", (int)pid, carried->fd);
    int from = open(core, O_RDONLY | O_CLOEXEC), to = open(theirs, O_WRONLY | O_CLOEXEC);
    int error = from < 0 || to < 0 ? -errno : copy_all(from, to);
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return error;
}

// The loader remembers the path for good: under a low number it would soon be that of a file of the program's.
static void raise_fd(gp_carried_t *carried, gp_borrowed_t *borrowed)
{
    int64_t high = call(borrowed, SYS_fcntl, (uint64_t)carried->fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return;
    gp_carried_close(carried, borrowed);
    carried->fd = (int)high;
}

int gp_carry(gp_carried_t *carried, gp_borrowed_t *borrowed, const gp_target_modules_t *modules, const char *core,
             const char *subject)
{
    *carried = (gp_carried_t){.fd = -1};
    uint64_t name = gp_borrowed_text(borrowed, strrchr(core, '/') + 1);
    int64_t fd = name != 0 ? call(borrowed, SYS_memfd_create, name, MFD_CLOEXEC, 0) : -EFAULT;
    if (fd < 0)
        return gp_fail(subject, "it has no %s at that path, and cannot be given it: %s", core, strerror((int)-fd));
    carried->fd = (int)fd;
    raise_fd(carried, borrowed);
    int error = fill(carried, modules->pid, core);
    if (error != 0)
        return gp_fail(subject, "%s cannot be copied to it: %s", core, strerror(-error));
    // A program that loads files of its own this way says /proc/self: the loader takes equal paths for the same file.
    snprintf(carried->path, sizeof(carried->path), "/proc/thread-self/fd/%d", carried->fd);
    return 0;
}

void gp_carried_close(gp_carried_t *carried, gp_borrowed_t *borrowed)
{
    if (carried->fd >= 0)
        call(borrowed, SYS_close, (uint64_t)carried->fd, 0, 0);
    carried->fd = -1;
}
