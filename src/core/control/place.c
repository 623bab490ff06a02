// SPDX-License-Identifier: MIT
#include "control/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/held.h"

enum { PREFIX_SIZE = 48 };

typedef struct place {
    gp_held_t directory;
    char prefix[PREFIX_SIZE]; // by which the process knows it
    char shown[GP_CONTROL_PATH_SIZE];
} place_t;

static place_t next = {.directory = {.fd = -1}}, current = {.directory = {.fd = -1}};

int gp_control_place_begin(int fd, const char *path, char own[GP_CONTROL_PATH_SIZE])
{
    const char *name = strrchr(path, '/') + 1;
    next.directory = gp_held_keep(fd);
    // /proc/self is empty once the main thread has ended.
    snprintf(next.prefix, sizeof(next.prefix), "/proc/thread-self/fd/%d/", next.directory.fd);
    snprintf(next.shown, sizeof(next.shown), "%.*s", (int)(name - path), path);
    int length = snprintf(own, GP_CONTROL_PATH_SIZE, "%s%s", next.prefix, name);
    return length < GP_CONTROL_PATH_SIZE ? 0 : -ENAMETOOLONG;
}

void gp_control_place_keep(void)
{
    gp_held_close(&current.directory);
    current = next;
    next.directory = GP_HELD_NONE;
}

void gp_control_place_drop(void)
{
    gp_held_close(&next.directory);
}

void gp_control_place_end(void)
{
    gp_held_close(&current.directory);
}

void gp_control_place_show(char path[GP_CONTROL_PATH_SIZE])
{
    size_t own = strlen(current.prefix), shown = strlen(current.shown);
    if (own == 0 || strncmp(path, current.prefix, own) != 0)
        return;
    size_t rest = strlen(path + own) + 1;
    if (shown + rest > GP_CONTROL_PATH_SIZE)
        return;
    memmove(path + shown, path + own, rest);
    memcpy(path, current.shown, shown);
}
