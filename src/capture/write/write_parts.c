// SPDX-License-Identifier: MIT
#include "capture/write/write_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// As the kernel has them: bit n - 1 for signal n.
typedef uint64_t mask_t;
#define MASK_OF(number) ((mask_t)1 << ((number)-1))

static const mask_t raised = MASK_OF(SIGXFSZ) | MASK_OF(SIGPIPE); // by writing

static mask_t write_parts_pending(void)
{
    mask_t mask = 0;
    syscall(SYS_rt_sigpending, &mask, sizeof(mask));
    return mask;
}

// Returns the mask that was. Not by pthread_sigmask(): in a profiled process that is ours, and tells the program's
// view.
static mask_t write_parts_hold(void)
{
    mask_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &raised, &before, sizeof(before));
    return before;
}

// Take off what the write has raised.
static void write_parts_let_go(mask_t before, mask_t pending_before)
{
    mask_t mine = raised & ~pending_before & write_parts_pending();
    while (mine != 0 && syscall(SYS_rt_sigtimedwait, &mine, NULL, &(struct timespec){0}, sizeof(mine)) > 0)
        ;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

static int write_parts_all(int fd, struct iovec *parts, int count)
{
    while (count > 0) {
        ssize_t written = writev(fd, parts, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        for (; count > 0 && (size_t)written >= parts->iov_len; parts++, count--)
            written -= (ssize_t)parts->iov_len;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
    return 0;
}

int gp_write_parts(int fd, struct iovec *parts, int count)
{
    mask_t before = write_parts_hold(), pending_before = write_parts_pending();
    int error = write_parts_all(fd, parts, count);
    write_parts_let_go(before, pending_before);
    return error;
}
