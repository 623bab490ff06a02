// SPDX-License-Identifier: MIT
// greenprof coroutines PID: see src/capture/census_place.h for how the two meet.
#include "live_census.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/census_place.h"
#include "message.h"
#include "model/kinds.h"

enum { TIMEOUT_MS = 10000, TEXT_SIZE = 16384 };

typedef struct target {
    pid_t pid, tid;
    uid_t uid;         // effective
    int own_pid;       // as the process itself sees it
    uint64_t caught;   // signals that it handles
    char *environment; // NULL = may not be read
    int directory;
    gp_census_marker_t marker;
} target_t;

static bool read_proc(pid_t pid, const char *name, char *text, size_t size, size_t *length)
{
    char path[96];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t got = 0;
    for (ssize_t more; got < size - 1 && (more = read(fd, text + got, size - 1 - got)) > 0;)
        got += (size_t)more;
    close(fd);
    text[got] = '\0';
    if (length != NULL)
        *length = got;
    return got > 0;
}

// The last number of a line of /proc/PID/status: the innermost of nested name spaces.
static int last_number(const char *status, const char *key)
{
    const char *at = strstr(status, key);
    int number = 0;
    for (char *end; at != NULL; at = end) {
        at += at == strstr(status, key) ? strlen(key) : 0;
        long found = strtol(at, &end, 10);
        if (end == at || *at == '\n')
            break;
        number = (int)found;
        if (*end == '\n')
            break;
    }
    return number;
}

static bool find_target(target_t *target)
{
    char text[TEXT_SIZE];
    unsigned real = 0, effective = 0;
    if (!read_proc(target->pid, "status", text, sizeof(text), NULL))
        return false;
    const char *uids = strstr(text, "\nUid:"), *caught = strstr(text, "\nSigCgt:");
    if (uids != NULL)
        sscanf(uids, "\nUid: %u %u", &real, &effective);
    if (caught != NULL)
        sscanf(caught, "\nSigCgt: %" SCNx64, &target->caught);
    target->uid = effective;
    target->own_pid = last_number(text, "\nNSpid:");
    if (target->own_pid == 0)
        target->own_pid = target->pid;
    return true;
}

// $XDG_RUNTIME_DIR as the process was started with; NULL = none, or it may not be read.
static const char *runtime_of(const target_t *target, char *text, size_t size)
{
    static const char name[] = "XDG_RUNTIME_DIR=";
    size_t length;
    if (!read_proc(target->pid, "environ", text, size, &length))
        return getenv("XDG_RUNTIME_DIR");
    for (const char *at = text; at < text + length; at += strlen(at) + 1)
        if (strncmp(at, name, sizeof(name) - 1) == 0)
            return at + sizeof(name) - 1;
    return NULL;
}

static bool is_it(const target_t *target, const gp_census_marker_t *marker)
{
    char text[TEXT_SIZE];
    return read_proc(target->pid, "stat", text, sizeof(text), NULL) && gp_census_start_time(text) == marker->start;
}

// Look for the marker in one directory, seen from the process' root and from ours.
static bool find_marker_in(target_t *target, const char *runtime)
{
    char path[GP_PLACE_SIZE], rooted[GP_PLACE_SIZE + 64];
    if (!gp_census_place(runtime, target->uid, path, sizeof(path)))
        return false;
    gp_census_place_tidy(path, target->uid);
    snprintf(rooted, sizeof(rooted), "/proc/%d/root%s", (int)target->pid, path);
    const char *const paths[] = {rooted, path};
    for (int i = 0; i < 2; i++) {
        int directory = gp_census_place_open(paths[i], target->uid);
        if (directory < 0)
            continue;
        if (gp_census_marker_read(directory, target->own_pid, &target->marker) == 0) {
            if (is_it(target, &target->marker)) {
                target->directory = directory;
                return true;
            }
            char name[24]; // of a process that has ended; this one has its number now
            snprintf(name, sizeof(name), "%d", target->own_pid);
            unlinkat(directory, name, 0);
        }
        close(directory);
    }
    return false;
}

static bool find_marker(target_t *target)
{
    char *text = malloc(1 << 20);
    bool found = false;
    if (text != NULL) {
        const char *runtime = runtime_of(target, text, 1 << 20);
        found = (runtime != NULL && find_marker_in(target, runtime)) || find_marker_in(target, NULL);
    }
    free(text);
    return found;
}

// The thread of the marker by its number here; 0 = it is gone: the process has become another program.
static pid_t find_task(const target_t *target)
{
    char path[64], text[TEXT_SIZE];
    pid_t found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)target->pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return 0;
    for (struct dirent *entry; found == 0 && (entry = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        char name[64];
        snprintf(name, sizeof(name), "task/%d/status", (int)tid);
        if (tid > 0 && read_proc(target->pid, name, text, sizeof(text), NULL) &&
            (last_number(text, "\nNSpid:") == target->marker.tid || tid == target->marker.tid))
            found = tid;
    }
    closedir(tasks);
    return found;
}

static int ask(const target_t *target, uint32_t number)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = target->marker.signal_number;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)((uintptr_t)GP_CENSUS_MAGIC << 32 | number);
    return syscall(SYS_rt_tgsigqueueinfo, target->pid, target->tid, info.si_signo, &info) == 0 ? 0 : -errno;
}

static int wait_for_answer(const target_t *target, uint32_t number, const char *subject)
{
    char name[48];
    struct timespec pause = {.tv_nsec = 1000000};
    gp_census_answer_name(target->own_pid, number, name, sizeof(name));
    for (int waited = 0; waited < TIMEOUT_MS; waited++) {
        int fd = openat(target->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            unlinkat(target->directory, name, 0);
            return fd;
        }
        if (!is_it(target, &target->marker))
            return gp_fail(subject, "the process ended before it answered"), -1;
        nanosleep(&pause, NULL);
    }
    gp_fail(subject, "no answer within %d s: is the process stopped?", TIMEOUT_MS / 1000);
    return -1;
}

static int ask_and_wait(target_t *target, const char *subject)
{
    uint32_t number;
    target->tid = find_task(target);
    int signal_number = target->marker.signal_number;
    if (target->tid == 0 || signal_number < 1 || signal_number > 64 || !(target->caught & 1ull << (signal_number - 1)))
        return gp_fail(subject, "greenprof is no longer active in this process"), -1;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        number = (uint32_t)getpid();
    int error = ask(target, number);
    if (error != 0)
        return gp_fail(subject, "cannot be asked: %s", strerror(-error)), -1;
    return wait_for_answer(target, number, subject);
}

int gp_live_census(pid_t pid, const char *subject)
{
    target_t target = {.pid = pid};
    if (!find_target(&target))
        return gp_fail(subject, "no such file, and no such process"), -1;
    if (geteuid() != 0 && geteuid() != target.uid)
        return gp_fail(subject, "the process belongs to another user: %s", strerror(EPERM)), -1;
    if (!find_marker(&target))
        return gp_fail(subject, "no greenprof in this process: start it under 'greenprof run', or let "
                                "it link libgreenprof and start a profile"),
               -1;
    int fd = ask_and_wait(&target, subject);
    close(target.directory);
    return fd;
}
