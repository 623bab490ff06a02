// SPDX-License-Identifier: MIT
#include "capture/census_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gp_census_place(const char *runtime, uid_t uid, char *path, size_t size)
{
    int length = runtime != NULL ? snprintf(path, size, "%s/greenprof", runtime)
                                 : snprintf(path, size, "/tmp/greenprof-%u", (unsigned)uid);
    return length > 0 && (size_t)length < size && path[0] == '/';
}

int gp_census_place_open(const char *path, uid_t uid)
{
    return gp_census_place_take(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), uid);
}

int gp_census_place_take(int fd, uid_t uid)
{
    struct stat status;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) == 0 && status.st_uid == uid && (status.st_mode & 077) == 0)
        return fd;
    close(fd);
    return -EPERM;
}

static void marker_name(int pid, char name[24])
{
    snprintf(name, 24, "%d", pid);
}

int gp_census_marker_write(int directory, const gp_census_marker_t *marker)
{
    char name[24], text[160];
    marker_name(marker->pid, name);
    int length =
        snprintf(text, sizeof(text), "greenprof 1 pid %d start %" PRIu64 " tid %d signal %d space %" PRIu64 "\n",
                 marker->pid, marker->start, marker->tid, marker->signal_number, marker->name_space);
    unlinkat(directory, name, 0);
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int error = write(fd, text, (size_t)length) == length ? 0 : -EIO;
    close(fd);
    if (error != 0)
        unlinkat(directory, name, 0);
    return error;
}

int gp_census_marker_read(int directory, int pid, gp_census_marker_t *marker)
{
    char name[24], text[160];
    marker_name(pid, name);
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    int found = sscanf(text, "greenprof 1 pid %d start %" SCNu64 " tid %d signal %d space %" SCNu64, &marker->pid,
                       &marker->start, &marker->tid, &marker->signal_number, &marker->name_space);
    return found == 5 && marker->pid == pid ? 0 : -EBADMSG;
}

uint64_t gp_census_name_space(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

void gp_census_place_tidy(const char *path, uid_t uid)
{
    int directory = gp_census_place_open(path, uid);
    DIR *entries = directory >= 0 ? fdopendir(directory) : NULL;
    if (entries == NULL) {
        if (directory >= 0)
            close(directory);
        return;
    }
    uint64_t own = gp_census_name_space();
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        gp_census_marker_t marker;
        int pid = atoi(entry->d_name);
        if (pid > 0 && gp_census_marker_read(directory, pid, &marker) == 0 && marker.name_space == own &&
            kill(pid, 0) != 0 && errno == ESRCH)
            unlinkat(directory, entry->d_name, 0);
    }
    closedir(entries);
}

uint64_t gp_census_start_time(const char *stat)
{
    const char *at = strrchr(stat, ')'); // the name before may have spaces and parentheses itself
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

void gp_census_answer_name(int pid, uint32_t number, char *name, size_t size)
{
    snprintf(name, size, "census-%d-%08" PRIx32, pid, number);
}
