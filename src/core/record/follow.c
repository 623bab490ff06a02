// SPDX-License-Identifier: MIT
#include "record/follow.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/main_file.h"
#include "settings.h"

// Programs that start other programs and are of no interest themselves, and helpers of scripts for small things.
static const char *const launchers[] = {
    "sh",    "bash",   "dash",      "zsh",     "ksh",     "fish",      "busybox",  "env",      "nice",     "nohup",
    "time",  "setsid", "timeout",   "sudo",    "su",      "xargs",     "taskset",  "chrt",     "ionice",   "stdbuf",
    "flock", "tini",   "dumb-init", "numactl", "setarch", "catchsegv", "readlink", "realpath", "basename", "dirname",
    "uname", "which",  "mktemp",    "expr",    "id",      "hostname",  NULL,
};

static bool follow_mode_is(const char *mode)
{
    return gp_setting_is(GP_SETTING_FOLLOW, mode);
}

static const char *follow_executable(char path[GP_MAIN_FILE_SIZE])
{
    gp_main_file(path);
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool follow_is_launcher(const char *name)
{
    for (size_t i = 0; launchers[i] != NULL; i++)
        if (strcmp(name, launchers[i]) == 0)
            return true;
    return false;
}

bool gp_follow_image(void)
{
    char path[GP_MAIN_FILE_SIZE];
    const char *pattern = gp_setting(GP_SETTING_FOLLOW_NAME), *name = follow_executable(path);
    int main_pid = (int)gp_setting_number(GP_SETTING_PID);
    bool own = main_pid == 0 || main_pid == getpid(), first = own && gp_setting(GP_SETTING_STARTED) == NULL;
    setenv("GREENPROF_STARTED", "1", 1);
    if (pattern != NULL && fnmatch(pattern, name, 0) != 0)
        return false;
    // Where the environment alone asks for it (containers, units), that is of every program it is passed on to.
    bool is_on_the_way = main_pid == 0 && follow_mode_is("programs") && follow_is_launcher(name);
    if ((first && !is_on_the_way) || follow_mode_is("all"))
        return true;
    return follow_mode_is("exec") ? own : follow_mode_is("none") ? false : !follow_is_launcher(name);
}

bool gp_follow_forks(void)
{
    return !follow_mode_is("exec") && !follow_mode_is("none");
}
