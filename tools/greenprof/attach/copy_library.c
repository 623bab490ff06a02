// SPDX-License-Identifier: MIT
#include "copy_library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "message.h"

enum { HIGH_FD = 900 };

// Returns the kernel's result, or what kept the call from being made.
static int64_t copy_library_call(gp_borrow_thread_t *borrowed, long number, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t arguments[6] = {a, b, c};
    int64_t result = 0;
    int error = gp_borrow_thread_system_call(borrowed, number, arguments, &result);
    return error != 0 ? error : result;
}

// The process writes into it itself, from its own memory: a number there may be another file's at any time, and must
// not be written to, or opened, with other rights than the process'. Returns 0 or a negative errno value.
static int copy_library_fill(const gp_copy_library_t *carried, gp_borrow_thread_t *borrowed, const char *core)
{
    static char bytes[GP_BORROWED_BYTES];
    ssize_t got;
    int64_t done = 0;
    int from = open(core, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return -errno;
    while (done >= 0 && (got = read(from, bytes, sizeof(bytes))) > 0) {
        uint64_t at = gp_borrow_thread_bytes(borrowed, bytes, (size_t)got);
        for (ssize_t written = 0; done >= 0 && written < got; written += (ssize_t)done)
            done = at == 0 ? -EFAULT
                           : copy_library_call(borrowed, SYS_write, (uint64_t)carried->fd, at + (uint64_t)written,
                                               (uint64_t)(got - written));
    }
    int error = done < 0 ? (int)done : got < 0 ? -errno : 0;
    close(from);
    // From here on the file is as written. A file that cannot be sealed is no memfd of ours any more.
    if (error == 0)
        error = (int)copy_library_call(borrowed, SYS_fcntl, (uint64_t)carried->fd, F_ADD_SEALS,
                                       F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return error;
}

// The loader remembers the path for good: under a low number it would soon be that of a file of the program's.
static void copy_library_raise_fd(gp_copy_library_t *carried, gp_borrow_thread_t *borrowed)
{
    int64_t high = copy_library_call(borrowed, SYS_fcntl, (uint64_t)carried->fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return;
    gp_copy_library_close(carried, borrowed);
    carried->fd = (int)high;
}

int gp_carry(gp_copy_library_t *carried, gp_borrow_thread_t *borrowed, const char *core, const char *subject)
{
    *carried = (gp_copy_library_t){.fd = -1};
    uint64_t name = gp_borrow_thread_text(borrowed, strrchr(core, '/') + 1);
    int64_t fd =
        name != 0 ? copy_library_call(borrowed, SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0) : -EFAULT;
    if (fd < 0)
        return gp_fail(subject, "it has no %s at that path, and cannot be given it: %s", core, strerror((int)-fd));
    carried->fd = (int)fd;
    copy_library_raise_fd(carried, borrowed);
    int error = copy_library_fill(carried, borrowed, core);
    if (error != 0)
        return gp_fail(subject, "%s cannot be copied to it: %s", core, strerror(-error));
    // A program that loads files of its own this way says /proc/self: the loader takes equal paths for the same file.
    snprintf(carried->path, sizeof(carried->path), "/proc/thread-self/fd/%d", carried->fd);
    return 0;
}

void gp_copy_library_close(gp_copy_library_t *carried, gp_borrow_thread_t *borrowed)
{
    if (carried->fd >= 0)
        copy_library_call(borrowed, SYS_close, (uint64_t)carried->fd, 0, 0);
    carried->fd = -1;
}
