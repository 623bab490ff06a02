// SPDX-License-Identifier: MIT
#include "capture/control_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct parts {
    int pid;
    uint64_t start, name_space;
} parts_t;

void gp_control_socket_name(int pid, uint64_t start, uint64_t name_space, char name[GP_CONTROL_SOCKET_NAME_SIZE])
{
    snprintf(name, GP_CONTROL_SOCKET_NAME_SIZE, "control-%d-%" PRIu64 "-%" PRIu64, pid, start, name_space);
}

static int parse(const char *name, parts_t *parts)
{
    return sscanf(name, "control-%d-%" SCNu64 "-%" SCNu64, &parts->pid, &parts->start, &parts->name_space) == 3;
}

// The entries of a directory, from the first one on. NULL: there are none to be had.
static DIR *open_entries(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (entries == NULL && fd >= 0)
        close(fd);
    return entries;
}

int gp_control_socket_find(int directory, int pid, uint64_t start, char name[GP_CONTROL_SOCKET_NAME_SIZE])
{
    DIR *entries = open_entries(directory);
    int error = -ENOENT;
    for (struct dirent *entry; entries != NULL && error != 0 && (entry = readdir(entries)) != NULL;) {
        parts_t parts;
        if (!parse(entry->d_name, &parts) || parts.pid != pid || parts.start != start)
            continue;
        gp_control_socket_name(parts.pid, parts.start, parts.name_space, name);
        error = strcmp(entry->d_name, name) == 0 ? 0 : -ENOENT;
    }
    if (entries != NULL)
        closedir(entries);
    return error;
}

// /proc/self is empty once the main thread has ended.
socklen_t gp_control_socket_address(int directory, const char *name, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof(address->sun_path), "/proc/thread-self/fd/%d/%.*s", directory,
             GP_CONTROL_SOCKET_NAME_SIZE - 1, name);
    return (socklen_t)sizeof(*address);
}

void gp_control_socket_tidy(int directory, uint64_t name_space)
{
    DIR *entries = open_entries(directory);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        parts_t parts;
        if (parse(entry->d_name, &parts) && parts.name_space == name_space && parts.pid > 0 &&
            kill(parts.pid, 0) != 0 && errno == ESRCH)
            unlinkat(directory, entry->d_name, 0);
    }
    if (entries != NULL)
        closedir(entries);
}
