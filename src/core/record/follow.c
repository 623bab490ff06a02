// SPDX-License-Identifier: MIT
#include "record/follow.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/main_file.h"
#include "settings.h"

// Programs that start other programs and are not of interest themselves, and those that scripts ask a small thing of.
static const char *const launchers[] = {
    "sh",    "bash",   "dash",      "zsh",     "ksh",     "fish",      "busybox",  "env",      "nice",     "nohup",
    "time",  "setsid", "timeout",   "sudo",    "su",      "xargs",     "taskset",  "chrt",     "ionice",   "stdbuf",
    "flock", "tini",   "dumb-init", "numactl", "setarch", "catchsegv", "readlink", "realpath", "basename", "dirname",
    "uname", "which",  "mktemp",    "expr",    "id",      "hostname",  NULL,
};

static bool mode_is(const char *mode)
{
    return gp_setting_is(GP_SETTING_FOLLOW, mode);
}

static const char *executable(char path[GP_MAIN_FILE_SIZE])
{
    gp_main_file(path);
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_launcher(const char *name)
{
    for (size_t i = 0; launchers[i] != NULL; i++)
        if (strcmp(name, launchers[i]) == 0)
            return true;
    return false;
}

bool gp_follow_image(void)
{
    char path[GP_MAIN_FILE_SIZE];
    const char *pattern = gp_setting(GP_SETTING_FOLLOW_NAME), *name = executable(path);
    int main_pid = (int)gp_setting_number(GP_SETTING_PID);
    bool own = main_pid == 0 || main_pid == getpid(), first = own && gp_setting(GP_SETTING_STARTED) == NULL;
    setenv("GREENPROF_STARTED", "1", 1);
    if (pattern != NULL && fnmatch(pattern, name, 0) != 0)
        return false;
    // Where the environment alone asks for it (containers, units), that is of every program it is passed on to.
    bool is_on_the_way = main_pid == 0 && mode_is("programs") && is_launcher(name);
    if ((first && !is_on_the_way) || mode_is("all"))
        return true;
    return mode_is("exec") ? own : mode_is("none") ? false : !is_launcher(name);
}

bool gp_follow_forks(void)
{
    return !mode_is("exec") && !mode_is("none");
}
