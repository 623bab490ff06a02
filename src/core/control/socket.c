// SPDX-License-Identifier: MIT
#include "control/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptors.h"
#include "live/census_place.h"
#include "live/control_place.h"
#include "settings.h"

enum {
    WAITING_MAX = 128, // connections that are not taken yet
    TRIES = 5,
};

gp_kept_fd_t gp_control_listener = {.fd = -1};

static char path[GP_PLACE_SIZE + GP_CONTROL_SOCKET_NAME_SIZE]; // "" = there is none
static int path_pid;                                           // which made it

// The socket gets its name once clients can connect: a name without a listener is a dead process'.
static int socket_listen_in(int directory, const char *name)
{
    char early[GP_CONTROL_SOCKET_NAME_SIZE];
    struct sockaddr_un address;
    gp_descriptor_low_begins();
    int fd = gp_descriptor_lift(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return -errno;
    snprintf(early, sizeof(early), "%.70s.part", name);
    unlinkat(directory, early, 0);
    socklen_t length = gp_control_socket_address(directory, early, &address);
    if (bind(fd, (struct sockaddr *)&address, length) == 0) {
        if (fchmodat(directory, early, 0600, 0) == 0 && listen(fd, WAITING_MAX) == 0 &&
            renameat(directory, early, directory, name) == 0)
            return fd;
        unlinkat(directory, early, 0);
    }
    int error = -errno;
    close(fd);
    return error;
}

static int socket_try_to_open(void)
{
    char directory_path[GP_PLACE_SIZE], name[GP_CONTROL_SOCKET_NAME_SIZE];
    uint64_t name_space = gp_census_name_space();
    int directory = gp_census_place_make(directory_path);
    if (directory < 0)
        return directory;
    gp_control_socket_tidy(directory, name_space);
    gp_control_socket_name(getpid(), name_space, name);
    path_pid = getpid();
    snprintf(path, sizeof(path), "%s/%s", directory_path, name);
    int fd = socket_listen_in(directory, name);
    close(directory);
    if (fd >= 0)
        gp_control_listener = gp_kept_fd_keep(fd);
    else
        path[0] = '\0';
    return fd < 0 ? fd : gp_kept_fd_is_there(&gp_control_listener) ? 0 : -EBADF;
}

// A host that closes all descriptors may do so in the middle of it.
int gp_control_socket_open(void)
{
    gp_kept_fd_close(&gp_control_listener);
    int error = gp_settings_are_refused() ? -EPERM : socket_try_to_open();
    for (int i = 1; i < TRIES && error != 0 && error != -EPERM && error != -ENAMETOOLONG; i++)
        error = socket_try_to_open();
    return error;
}

void gp_control_socket_remove(void)
{
    int saved = errno;
    if (path[0] != '\0' && path_pid == getpid())
        unlink(path);
    errno = saved;
}

void gp_control_socket_forget(void)
{
    path[0] = '\0';
    gp_kept_fd_close(&gp_control_listener);
}
