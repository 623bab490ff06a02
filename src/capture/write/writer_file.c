// SPDX-License-Identifier: MIT
#include "capture/write/writer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "base/descriptors.h"

enum {
    PREDECESSORS_MAX = 1000,
    TRIES = 10, // a directory may be removed once more, a file may come and go
    PATH_ROOM = sizeof(((gp_writer_t *)0)->path),
    // O_APPEND: should a host close the descriptor, it is reopened and goes on where it was.
    // O_NONBLOCK: the program does not wait for a reader of a pipe; without one there is no capture (ENXIO).
    FLAGS = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK,
};

// Attribute of a part: its inode and name. A copy has another inode; a file that a user renamed has another name.
static const char part_mark[] = "user.greenprof.part";

enum { MARK_SIZE = 320 };

gp_kept_fd_t gp_writer_file_directory(const char *path)
{
    char directory[PATH_ROOM] = ".";
    const char *slash = strrchr(path, '/');
    if (slash != NULL)
        snprintf(directory, sizeof(directory), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    int fd = gp_descriptor_open(AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0);
    return fd >= 0 ? gp_kept_fd_keep(fd) : GP_HELD_NONE;
}

int gp_writer_file_at(const gp_kept_fd_t *directory, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    bool is_folder = slash != NULL && slash[1] == '\0', is_held = !is_folder && gp_kept_fd_is_there(directory);
    *name = is_held && slash != NULL ? slash + 1 : path;
    return is_held ? directory->fd : AT_FDCWD;
}

static size_t writer_file_directory_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

void gp_writer_file_set_path(gp_writer_t *writer, const char *path)
{
    size_t len = writer_file_directory_len(path);
    bool is_same = len == writer_file_directory_len(writer->path) && memcmp(writer->path, path, len) == 0;
    if (!is_same || writer->lent != 0)
        gp_kept_fd_close(&writer->directory);
    snprintf(writer->path, sizeof(writer->path), "%s", path);
    if (writer->lent == 0 && !gp_kept_fd_is_there(&writer->directory))
        writer->directory = gp_writer_file_directory(path);
}

bool gp_writer_file_is_taken(const char *path)
{
    struct stat status;
    int fd = gp_descriptor_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    bool is_taken = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                    flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return is_taken;
}

bool gp_writer_file_add_pid(char *path, size_t size)
{
    size_t length = strlen(path);
    return (size_t)snprintf(path + length, size - length, ".%d", (int)getpid()) < size - length;
}

// The capture of this very process before it replaced its image by exec?
static bool writer_file_is_predecessor(int at, const char *name, const gp_file_header_t *header)
{
    gp_file_header_t old;
    int fd = gp_descriptor_open(at, name, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, &old, sizeof(old));
    close(fd);
    static const uint8_t none[16];
    return got == (ssize_t)sizeof(old) && memcmp(old.magic, GP_FILE_MAGIC, 8) == 0 && old.pid == header->pid &&
           memcmp(old.session, header->session, 16) == 0 && memcmp(old.session, none, 16) != 0;
}

static void writer_file_move_predecessor(int at, const char *name)
{
    char aside[PATH_ROOM + 32];
    for (int i = 1; i < PREDECESSORS_MAX; i++) {
        snprintf(aside, sizeof(aside), "%s.%d", name, i);
        if (faccessat(at, aside, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
            renameat(at, name, at, aside);
            return;
        }
    }
}

static bool writer_file_is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

static bool writer_file_is_trusted_link(int at, const char *name)
{
    struct stat status;
    return fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode) &&
           writer_file_is_trusted(status.st_uid);
}

// Make the file, or open the existing one. Others may foresee a name with a process id, and put a link there.
static int writer_file_open_there(const gp_writer_t *writer, bool *is_made)
{
    const char *name;
    int fd = -1, at = gp_writer_file_at(&writer->directory, writer->path, &name);
    for (int i = 0; i < TRIES; i++) {
        fd = gp_descriptor_open(at, name, FLAGS | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        *is_made = fd >= 0;
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
        fd = gp_descriptor_open(at, name, FLAGS | O_NOFOLLOW, 0);
        if (fd < 0 && errno == ELOOP && !writer->has_made_name && writer_file_is_trusted_link(at, name))
            fd = gp_descriptor_open(at, name, FLAGS | O_CREAT, 0600); // also where it leads to nothing yet
        if (fd >= 0 || errno != ENOENT)
            return fd >= 0 ? fd : -errno;
    }
    return -ENOENT;
}

// May this be written to? An unnamed pipe was handed over; anything else with a name, another user may have put there.
static bool writer_file_is_right(const gp_writer_t *writer, int fd, const struct stat *status)
{
    struct statfs system;
    if (S_ISREG(status->st_mode))
        return writer_file_is_trusted(status->st_uid) && status->st_nlink == 1;
    if (writer->has_made_name || S_ISBLK(status->st_mode))
        return false;
    return !S_ISFIFO(status->st_mode) || writer_file_is_trusted(status->st_uid) ||
           (fstatfs(fd, &system) == 0 && (unsigned long)system.f_type == PIPEFS_MAGIC);
}

static int writer_file_take(gp_writer_t *writer, int fd, const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return 0;
    // Where the file system has no locks, two processes may have one file.
    if (writer->is_recorded && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return -EBUSY;
    // For its user alone: the program's arguments and paths are in it.
    if (writer->is_recorded && status->st_uid == geteuid() && (status->st_mode & 077) != 0 && fchmod(fd, 0600) != 0)
        return -errno;
    return status->st_size == 0 || ftruncate(fd, 0) == 0 ? 0 : -errno;
}

static int writer_file_keep(gp_writer_t *writer, int fd, bool is_made)
{
    struct stat status;
    int error = fstat(fd, &status) == 0 ? 0 : -errno;
    if (error == 0 && !is_made && !writer_file_is_right(writer, fd, &status))
        error = -EPERM;
    if (error == 0)
        error = writer_file_take(writer, fd, &status);
    if (error != 0)
        return error;
    fcntl(fd, F_SETFL, O_APPEND); // a slow reader is waited for
    int high = gp_descriptor_raise(fd);
    writer->is_regular = S_ISREG(status.st_mode);
    writer->device = status.st_dev;
    writer->inode = status.st_ino;
    writer->fd = high >= 0 ? high : fd;
    return 0;
}

static int writer_file_make_directory(gp_writer_t *writer)
{
    char directory[PATH_ROOM];
    const char *slash = strrchr(writer->path, '/');
    if (slash == NULL || slash == writer->path)
        return -1;
    memcpy(directory, writer->path, (size_t)(slash - writer->path));
    directory[slash - writer->path] = '\0';
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return -1;
    gp_kept_fd_close(&writer->directory); // the former, removed one
    writer->directory = gp_writer_file_directory(writer->path);
    return 0;
}

// The file that the asker made and lends: the asker judged it; the owner may have no number here.
static int writer_file_take_lent(gp_writer_t *writer)
{
    struct stat status;
    int fd = fcntl(writer->lent, F_DUPFD_CLOEXEC, gp_descriptor_floor()), error = fd < 0 ? -errno : -EPERM;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        error = writer_file_keep(writer, fd, true);
    if (error != 0 && fd >= 0)
        close(fd);
    return error;
}

static int writer_file_open_one(gp_writer_t *writer)
{
    const char *name;
    bool is_made;
    if (writer->lent != 0)
        return writer_file_take_lent(writer);
    int at = gp_writer_file_at(&writer->directory, writer->path, &name);
    if (writer_file_is_predecessor(at, name, &writer->header))
        writer_file_move_predecessor(at, name);
    int fd = writer_file_open_there(writer, &is_made);
    for (int i = 0; fd == -ENOENT && writer->makes_directory && i < TRIES; i++) {
        if (writer_file_make_directory(writer) != 0)
            break;
        fd = writer_file_open_there(writer, &is_made);
    }
    int error = fd < 0 ? fd : writer_file_keep(writer, fd, is_made);
    if (error != 0 && fd >= 0)
        close(fd);
    if (error != 0 && fd >= 0 && is_made)
        gp_writer_file_remove(writer, 0);
    return error;
}

int gp_writer_file_open(gp_writer_t *writer)
{
    int error = writer_file_open_one(writer);
    if (error != -EBUSY || writer->lent != 0 || !gp_writer_file_add_pid(writer->path, sizeof(writer->path)))
        return error;
    writer->has_made_name = true;
    return writer_file_open_one(writer);
}

void gp_writer_file_remove(const gp_writer_t *writer, off_t most)
{
    const char *name;
    struct stat status;
    int at = gp_writer_file_at(&writer->directory, writer->path, &name);
    if (fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) && status.st_size <= most)
        unlinkat(at, name, 0);
}

static bool writer_file_is_ours(const gp_writer_t *writer, const struct stat *status)
{
    return status->st_dev == writer->device && status->st_ino == writer->inode;
}

int gp_writer_file_check(gp_writer_t *writer)
{
    struct stat status;
    const char *name;
    bool is_told = fstat(writer->fd, &status) == 0;
    if (is_told ? writer_file_is_ours(writer, &status) : errno != EBADF)
        return 0;
    int at = gp_writer_file_at(&writer->directory, writer->path, &name), fd = gp_descriptor_open(at, name, FLAGS, 0);
    if (fd < 0)
        return -errno;
    bool is_ours =
        fstat(fd, &status) == 0 && writer_file_is_ours(writer, &status) &&
        (!writer->is_regular || !writer->is_recorded || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    if (!is_ours) {
        close(fd);
        return -ESTALE; // removed or replaced meanwhile
    }
    fcntl(fd, F_SETFL, O_APPEND);
    int high = gp_descriptor_raise(fd);
    writer->fd = high >= 0 ? high : fd;
    return 0;
}

void gp_writer_file_close(gp_writer_t *writer)
{
    struct stat status;
    if (writer->fd >= 0 && fstat(writer->fd, &status) == 0 && writer_file_is_ours(writer, &status))
        close(writer->fd);
    writer->fd = -1;
}

static int writer_file_mark_of(const struct stat *status, const char *name, char mark[MARK_SIZE])
{
    return snprintf(mark, MARK_SIZE, "%llu %s", (unsigned long long)status->st_ino, name);
}

int gp_writer_file_put_aside(gp_writer_t *writer)
{
    const char *name, *aside, *slash = strrchr(writer->aside, '/');
    char mark[MARK_SIZE];
    struct stat status;
    int at = gp_writer_file_at(&writer->directory, writer->path, &name);
    aside = name == writer->path || slash == NULL ? writer->aside : slash + 1;
    if (fstatat(at, name, &status, 0) != 0)
        return -errno;
    if (!writer_file_is_ours(writer, &status))
        return -ESTALE;
    int length = writer_file_mark_of(&status, slash != NULL ? slash + 1 : writer->aside, mark);
    fsetxattr(writer->fd, part_mark, mark, (size_t)length, 0); // not every file system has them
    if (renameat(at, name, at, aside) != 0)
        return -errno;
    close(writer->fd);
    writer->fd = -1;
    return 0;
}

bool gp_writer_file_may_turn(const gp_writer_t *writer)
{
    struct stat directory;
    const char *name;
    int at = gp_writer_file_at(&writer->directory, writer->path, &name);
    if (name == writer->path || fstatat(at, "", &directory, AT_EMPTY_PATH) != 0)
        return true; // tried
    if (faccessat(at, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return false;
    struct stat file;
    uid_t self = geteuid();
    return self == 0 || (directory.st_mode & S_ISVTX) == 0 || directory.st_uid == self ||
           (fstatat(at, name, &file, AT_SYMLINK_NOFOLLOW) == 0 && file.st_uid == self);
}

bool gp_writer_file_is_part(int directory, const char *name)
{
    struct stat status;
    char mark[MARK_SIZE], found[MARK_SIZE];
    int fd = gp_descriptor_open(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool is_part = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && writer_file_is_trusted(status.st_uid);
    int length = is_part ? writer_file_mark_of(&status, name, mark) : 0;
    is_part =
        is_part && fgetxattr(fd, part_mark, found, sizeof(found)) == length && memcmp(mark, found, (size_t)length) == 0;
    close(fd);
    return is_part;
}
