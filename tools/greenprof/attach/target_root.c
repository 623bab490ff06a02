// SPDX-License-Identifier: MIT
#include "target_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/regular_file.h"

enum { BLOCK_BYTES = 65536 };

void gp_target_path(pid_t pid, const char *name, char path[GP_TARGET_ENTRY_SIZE])
{
    char tasks[GP_TARGET_ENTRY_SIZE];
    struct stat status;
    snprintf(path, GP_TARGET_ENTRY_SIZE, "/proc/%d/%.24s", (int)pid, name);
    snprintf(tasks, sizeof(tasks), "/proc/%d/task", (int)pid);
    DIR *entries = stat(path, &status) != 0 && errno == ENOENT ? opendir(tasks) : NULL;
    if (entries == NULL)
        return;
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(entries)) != NULL;) {
        snprintf(path, GP_TARGET_ENTRY_SIZE, "/proc/%d/task/%.10s/%.24s", (int)pid, entry->d_name, name);
        found = entry->d_name[0] != '.' && stat(path, &status) == 0;
    }
    closedir(entries);
}

// Is the process' root directory ours, too? Then links lead to the same places there as here.
static bool target_root_is_our_root(int root)
{
    struct stat ours, theirs;
    return stat("/", &ours) == 0 && fstat(root, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

int gp_target_root_open(pid_t pid, const char *path, int flags)
{
    const struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};
    char root[GP_TARGET_ENTRY_SIZE];
    gp_target_path(pid, "root", root);
    int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -1;
    int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM) &&
        target_root_is_our_root(directory)) // before Linux 5.6, or a filter
        fd = open(path, flags | O_CLOEXEC);
    int saved = errno;
    close(directory);
    errno = saved;
    return fd;
}

int gp_target_root_read(pid_t pid, const char *path)
{
    int seen = gp_target_root_open(pid, path, O_PATH);
    if (seen < 0)
        return -errno;
    int fd = gp_regular_file_of(seen);
    close(seen);
    return fd;
}

static bool target_root_have_same_bytes(int a, int b)
{
    static char blocks[2][BLOCK_BYTES];
    ssize_t got;
    off_t at = 0;
    do {
        got = pread(a, blocks[0], BLOCK_BYTES, at);
        if (got < 0 || pread(b, blocks[1], BLOCK_BYTES, at) != got || memcmp(blocks[0], blocks[1], (size_t)got) != 0)
            return false;
        at += got;
    } while (got > 0);
    return true;
}

static bool target_root_are_same(int ours, int theirs)
{
    struct stat mine, other;
    if (fstat(ours, &mine) != 0 || fstat(theirs, &other) != 0)
        return false;
    if (mine.st_dev == other.st_dev && mine.st_ino == other.st_ino)
        return true;
    return mine.st_size == other.st_size && target_root_have_same_bytes(ours, theirs);
}

bool gp_target_root_has_copy(pid_t pid, const char *path)
{
    int ours = open(path, O_RDONLY | O_CLOEXEC), theirs = gp_target_root_read(pid, path);
    bool has = ours >= 0 && theirs >= 0 && target_root_are_same(ours, theirs);
    if (ours >= 0)
        close(ours);
    if (theirs >= 0)
        close(theirs);
    return has;
}

bool gp_target_root_has_proc(pid_t pid)
{
    struct statfs system;
    struct stat link;
    int proc = gp_target_root_open(pid, "/proc", O_PATH | O_DIRECTORY);
    bool has = proc >= 0 && fstatfs(proc, &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
               fstatat(proc, "thread-self", &link, AT_SYMLINK_NOFOLLOW) == 0;
    if (proc >= 0)
        close(proc);
    return has;
}
