// SPDX-License-Identifier: MIT
#include "live/control_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptors.h"

typedef struct parts {
    int pid;
    uint64_t name_space;
} parts_t;

void gp_control_socket_name(int pid, uint64_t name_space, char name[GP_CONTROL_SOCKET_NAME_SIZE])
{
    snprintf(name, GP_CONTROL_SOCKET_NAME_SIZE, "control-%d-%" PRIu64, pid, name_space);
}

static bool control_place_parse(const char *name, parts_t *parts)
{
    char again[GP_CONTROL_SOCKET_NAME_SIZE];
    if (sscanf(name, "control-%d-%" SCNu64, &parts->pid, &parts->name_space) != 2)
        return false;
    gp_control_socket_name(parts->pid, parts->name_space, again);
    return strcmp(name, again) == 0;
}

// The entries of a directory, from the first one on. NULL: there are none to be had.
static DIR *control_place_open_entries(int directory)
{
    return gp_descriptor_entries(directory, ".");
}

bool gp_control_socket_each(int directory, int pid, bool (*look)(int directory, const char *name, void *argument),
                            void *argument)
{
    DIR *entries = control_place_open_entries(directory);
    bool found = false;
    for (struct dirent *entry; entries != NULL && !found && (entry = readdir(entries)) != NULL;) {
        parts_t parts;
        found =
            control_place_parse(entry->d_name, &parts) && parts.pid == pid && look(directory, entry->d_name, argument);
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

// /proc/self is empty once the main thread has ended.
socklen_t gp_control_socket_address(int directory, const char *name, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof(address->sun_path), "/proc/thread-self/fd/%d%s%.*s", directory,
             name[0] != '\0' ? "/" : "", GP_CONTROL_SOCKET_NAME_SIZE - 1, name);
    return (socklen_t)sizeof(*address);
}

void gp_control_socket_tidy(int directory, uint64_t name_space)
{
    DIR *entries = control_place_open_entries(directory);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        parts_t parts;
        if (control_place_parse(entry->d_name, &parts) && parts.name_space == name_space && parts.pid > 0 &&
            kill(parts.pid, 0) != 0 && errno == ESRCH)
            unlinkat(directory, entry->d_name, 0);
    }
    if (entries != NULL)
        closedir(entries);
}
