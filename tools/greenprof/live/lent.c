// SPDX-License-Identifier: MIT
#include "lent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

enum { LINK_SIZE = 40 };

// Open again by the descriptor: the opened file is the judged one.
static int lent_open_again(int fd, int flags)
{
    char path[LINK_SIZE];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int again = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    int saved = errno;
    close(fd);
    errno = saved;
    return again;
}

// Open an existing file. Returns -1 and errno; EMLINK: it is not this user's file alone.
static int lent_open_existing(const char *path)
{
    struct stat status;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return -1;
    if (S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1)
        return lent_open_again(fd, O_WRONLY | O_APPEND);
    close(fd);
    errno = EMLINK;
    return -1;
}

static bool lent_name_file(const char *path, int own_pid, char out[GP_CONTROL_PATH_SIZE])
{
    size_t len = 0;
    for (const char *at = path; *at != '\0' && len < GP_CONTROL_PATH_SIZE; at++) {
        bool is_pid = at[0] == '%' && at[1] == 'p';
        len += (size_t)(is_pid ? snprintf(out + len, GP_CONTROL_PATH_SIZE - len, "%d", own_pid)
                               : snprintf(out + len, GP_CONTROL_PATH_SIZE - len, "%c", *at));
        at += is_pid;
    }
    return len < GP_CONTROL_PATH_SIZE;
}

int gp_lend(gp_lent_t *lent, const char *path, int own_pid)
{
    lent->is_made = false;
    if (!lent_name_file(path, own_pid, lent->path))
        return gp_fail(path, "%s", strerror(ENAMETOOLONG));
    lent->fd = open(lent->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    lent->is_made = lent->fd >= 0;
    if (lent->fd < 0 && errno == EEXIST)
        lent->fd = lent_open_existing(lent->path);
    if (lent->fd >= 0)
        return 0;
    return gp_fail(lent->path, "%s",
                   errno == EMLINK
                       ? "is there, and no file of this user's alone, as one must be that is lent to another "
                         "root directory"
                       : strerror(errno));
}

void gp_lent_end(gp_lent_t *lent, bool is_used)
{
    struct stat ours, named;
    if (lent->fd < 0)
        return;
    if (lent->is_made && !is_used && fstat(lent->fd, &ours) == 0 && lstat(lent->path, &named) == 0 &&
        ours.st_dev == named.st_dev && ours.st_ino == named.st_ino)
        unlink(lent->path);
    close(lent->fd);
    lent->fd = -1;
}

int gp_lent_reopen(int fd)
{
    struct stat status;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !(flags & O_PATH) && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return lent_open_again(fd, O_RDONLY);
    close(fd);
    errno = EBADMSG;
    return -1;
}
