// SPDX-License-Identifier: MIT
#include "run_watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_aside.h"
#include "run_checks.h"
#include "run_last_word.h"

enum { LOOK_MS = 1000, PATIENCE_MS = 100 };

typedef struct watch {
    pid_t pid;
    int program; // pidfd
    struct stat error;
    char file[PATH_MAX], name[PATH_MAX];
} watch_t;

// linux/pidfd.h, which may be older than the kernel.
typedef struct pidfd_info {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code; // as waitpid() has it
    uint64_t reserved;
} pidfd_info_t;

#define PIDFD_INFO_EXIT 8ull // once the process has been waited for
#define PIDFD_GET_INFO  _IOWR(0xff, 11, pidfd_info_t)

static bool run_watch_ask_kernel(const watch_t *watch, int *status)
{
    pidfd_info_t info = {.mask = PIDFD_INFO_EXIT};
    if (ioctl(watch->program, PIDFD_GET_INFO, &info) != 0 || !(info.mask & PIDFD_INFO_EXIT))
        return false;
    *status = info.exit_code;
    return true;
}

// Ask the last word of /proc/PID/stat for the status of a process that has not been waited for.
static bool run_watch_ask_zombie(const watch_t *watch, int *status)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)watch->pid);
    FILE *file = fopen(path, "re");
    size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[length] = '\0';
    const char *state = strrchr(text, ')'), *last = strrchr(text, ' ');
    if (state == NULL || strncmp(state, ") Z ", 4) != 0)
        return false;
    *status = (int)strtol(last, NULL, 10);
    return true;
}

// 0 = it ended by itself.
static int run_watch_signal_of_end(const watch_t *watch)
{
    int status;
    if (!run_watch_ask_kernel(watch, &status) && !run_watch_ask_zombie(watch, &status) &&
        !run_watch_ask_kernel(watch, &status))
        return GP_RUN_UNKNOWN_SIGNAL;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static bool run_watch_has_reader_that_waits(const watch_t *watch)
{
    return S_ISFIFO(watch->error.st_mode) || S_ISSOCK(watch->error.st_mode);
}

static bool run_watch_program_has_it(const watch_t *watch)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)watch->pid, STDERR_FILENO);
    return stat(path, &status) == 0 && status.st_dev == watch->error.st_dev && status.st_ino == watch->error.st_ino;
}

// Returns whether there may be something to say, and somewhere to say it.
static bool run_watch_wait_for_end(const watch_t *watch)
{
    for (;;) {
        struct pollfd events[] = {{.fd = watch->program, .events = POLLIN}, {.fd = STDERR_FILENO}};
        int count = poll(events, 2, run_watch_has_reader_that_waits(watch) ? LOOK_MS : -1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 || events[1].revents != 0)
            return false;
        if (events[0].revents != 0)
            return true;
        if (!run_watch_program_has_it(watch) &&
            poll(events, 1, LOOK_MS) == 0) // or it is about to end: its files are closed first
            return false;
    }
}

static void run_watch_say(const watch_t *watch)
{
    char line[GP_CLOSING_LINE_SIZE];
    int number = run_watch_signal_of_end(watch);
    size_t length = gp_run_last_word(line, watch->file, watch->name, watch->pid, number);
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (length > 0 && poll(&ready, 1, PATIENCE_MS) == 1 && (ready.revents & POLLOUT) && !(ready.revents & POLLERR) &&
        write(STDERR_FILENO, line, length) < 0)
        return; // there is nowhere else to say it
}

static void run_watch_it(int program, void *context)
{
    watch_t *watch = context;
    watch->program = program;
    if (run_watch_wait_for_end(watch))
        run_watch_say(watch);
}

void gp_run_watch(const char *path, const char *name, const gp_arguments_t *arguments)
{
    watch_t watch = {.pid = getpid()};
    if (fstat(STDERR_FILENO, &watch.error) == 0 && gp_run_replace_pid(path, watch.file) == 0 &&
        gp_run_replace_pid(name, watch.name) == 0)
        gp_run_aside(run_watch_it, &watch, arguments); // where there is none, nothing is said
}
