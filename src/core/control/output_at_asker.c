// SPDX-License-Identifier: MIT
#include "control/output_at_asker.h"

#include <stdio.h>
#include <string.h>

static char current[GP_CONTROL_PATH_SIZE], shown[GP_CONTROL_PATH_SIZE];

void gp_control_place_name(int fd, char own[GP_CONTROL_PATH_SIZE])
{
    // /proc/self is empty once the main thread has ended.
    snprintf(own, GP_CONTROL_PATH_SIZE, "/proc/thread-self/fd/%d", fd);
}

void gp_control_place_keep(const char *own, const char *path)
{
    snprintf(current, sizeof(current), "%s", own);
    snprintf(shown, sizeof(shown), "%s", path);
}

void gp_control_place_show(char path[GP_CONTROL_PATH_SIZE])
{
    if (path[0] != '\0' && strcmp(path, current) == 0)
        memcpy(path, shown, GP_CONTROL_PATH_SIZE);
}
