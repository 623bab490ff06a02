// SPDX-License-Identifier: MIT
// A descriptor of greenprof's own, kept for long: a host that closes descriptors unknown to it may have another file by
// this number afterwards.
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/descriptors.h"

typedef struct gp_kept_fd {
    int fd; // -1 = none
    dev_t device;
    ino_t inode;
} gp_kept_fd_t;

#define GP_HELD_NONE                                                                                                   \
    (gp_kept_fd_t)                                                                                                     \
    {                                                                                                                  \
        .fd = -1                                                                                                       \
    }

// Keep `fd`, out of the host's way where there is room.
static inline gp_kept_fd_t gp_kept_fd_keep(int fd)
{
    struct stat status;
    int high = gp_descriptor_raise(fd);
    gp_kept_fd_t held = {.fd = high >= 0 ? high : fd};
    if (fstat(held.fd, &status) == 0) {
        held.device = status.st_dev;
        held.inode = status.st_ino;
    }
    return held;
}

// Is the descriptor still the same file? Signals: safe; changes errno.
static inline bool gp_kept_fd_is_there(const gp_kept_fd_t *held)
{
    struct stat status;
    return held->fd >= 0 && fstat(held->fd, &status) == 0 && status.st_dev == held->device &&
           status.st_ino == held->inode;
}

static inline void gp_kept_fd_close(gp_kept_fd_t *held)
{
    if (gp_kept_fd_is_there(held))
        syscall(SYS_close, held->fd); // the program's close() leaves it open
    held->fd = -1;
}
