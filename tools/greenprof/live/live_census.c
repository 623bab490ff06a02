// SPDX-License-Identifier: MIT
// greenprof coroutines PID: see src/live/census_place.h for how the two meet.
#include "live_census.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "live/census_place.h"
#include "live_target.h"
#include "message.h"
#include "model/kinds.h"

enum { TIMEOUT_MS = 10000, TEXT_SIZE = 16384 };

typedef struct census {
    gp_target_t target;
    pid_t tid;
    int directory;
    gp_census_marker_t marker;
} census_t;

static bool live_census_find_marker_in(int directory, void *argument)
{
    census_t *census = argument;
    const gp_target_t *target = &census->target;
    if (gp_census_marker_read(directory, target->own_pid, &census->marker) != 0)
        return false;
    if (gp_target_began_at(target, census->marker.start)) {
        census->directory = directory;
        return true;
    }
    char name[24]; // of an ended process, whose number is now ours
    snprintf(name, sizeof(name), "%d", target->own_pid);
    unlinkat(directory, name, 0);
    return false;
}

// The thread of the marker by its number here; 0 = it is gone: the process has become another program.
static pid_t live_census_find_task(const census_t *census)
{
    char path[64], text[TEXT_SIZE];
    pid_t found = 0;
    pid_t pid = census->target.pid;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return 0;
    for (struct dirent *entry; found == 0 && (entry = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        char name[64];
        snprintf(name, sizeof(name), "task/%d/status", (int)tid);
        if (tid > 0 && gp_target_read(pid, name, text, sizeof(text), NULL) &&
            (gp_target_last_number(text, "\nNSpid:") == census->marker.tid || tid == census->marker.tid))
            found = tid;
    }
    closedir(tasks);
    return found;
}

static int live_census_ask(const census_t *census, uint32_t number)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = census->marker.signal_number;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)((uintptr_t)GP_CENSUS_MAGIC << 32 | number);
    return syscall(SYS_rt_tgsigqueueinfo, census->target.pid, census->tid, info.si_signo, &info) == 0 ? 0 : -errno;
}

static int live_census_wait_for_answer(const census_t *census, uint32_t number, const char *subject)
{
    char name[48];
    struct timespec pause = {.tv_nsec = 1000000};
    gp_census_answer_name(census->target.own_pid, number, name, sizeof(name));
    for (int waited = 0; waited < TIMEOUT_MS; waited++) {
        int fd = gp_regular_file_open(census->directory, name, O_NOFOLLOW);
        if (fd >= 0) {
            unlinkat(census->directory, name, 0);
            return fd;
        }
        if (!gp_target_is_there(&census->target))
            return gp_fail(subject, "the process ended before it answered"), -1;
        nanosleep(&pause, NULL);
    }
    gp_fail(subject, "no answer within %d s: is the process stopped?", TIMEOUT_MS / 1000);
    return -1;
}

static int live_census_ask_and_wait(census_t *census, const char *subject)
{
    uint32_t number;
    census->tid = live_census_find_task(census);
    int signal_number = census->marker.signal_number;
    if (census->tid == 0 || signal_number < 1 || signal_number > 64 ||
        !(census->target.caught & 1ull << (signal_number - 1)))
        return gp_fail(subject, "greenprof is no longer active in this process"), -1;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        number = (uint32_t)getpid();
    int error = live_census_ask(census, number);
    if (error != 0)
        return gp_fail(subject, "cannot be asked: %s", strerror(-error)), -1;
    return live_census_wait_for_answer(census, number, subject);
}

int gp_live_census(pid_t pid, const char *subject)
{
    census_t census = {0};
    if (gp_target_find(&census.target, pid, subject) != 0)
        return -1;
    if (!gp_target_each_place(&census.target, live_census_find_marker_in, &census))
        return gp_fail(
                   subject,
                   "no greenprof in this process: 'greenprof attach PID' puts it there, as does 'greenprof run', or "
                   "libgreenprof, linked, with a profile"),
               -1;
    int fd = live_census_ask_and_wait(&census, subject);
    close(census.directory);
    return fd;
}
