// SPDX-License-Identifier: MIT
#include "live_target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/pause_others.h"
#include "attach/target_root.h"
#include "live/census_place.h"
#include "live/control_place.h"
#include "message.h"

enum { TEXT_SIZE = 16384, ENVIRONMENT_SIZE = 1 << 20 };

bool gp_target_read(pid_t pid, const char *name, char *text, size_t size, size_t *length)
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

int gp_target_last_number(const char *status, const char *key)
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

// Returns the process' own number, of whichever thread of its this is; 0 = there is none.
static int live_target_read_status(gp_target_t *target)
{
    char text[TEXT_SIZE];
    unsigned real = 0, effective = 0;
    if (!gp_target_read(target->pid, "status", text, sizeof(text), NULL))
        return 0;
    const char *uids = strstr(text, "\nUid:"), *caught = strstr(text, "\nSigCgt:");
    if (uids != NULL)
        sscanf(uids, "\nUid: %u %u", &real, &effective);
    if (caught != NULL)
        sscanf(caught, "\nSigCgt: %" SCNx64, &target->caught);
    target->uid = effective;
    target->own_pid = gp_target_last_number(text, "\nNSpid:");
    if (target->own_pid == 0)
        target->own_pid = target->pid;
    return gp_target_last_number(text, "\nTgid:");
}

int gp_target_find(gp_target_t *target, pid_t pid, const char *subject)
{
    char text[TEXT_SIZE];
    *target = (gp_target_t){.pid = pid};
    int leader = live_target_read_status(target);
    if (leader == 0 || !gp_target_read(pid, "stat", text, sizeof(text), NULL))
        return gp_fail(subject, "no such process");
    if (leader != (int)pid)
        return gp_fail(subject, "it is a thread of process %d", leader);
    target->start = gp_census_start_time(text);
    if (geteuid() != 0 && geteuid() != target->uid)
        return gp_fail(subject, "the process belongs to another user: %s", strerror(EPERM));
    return 0;
}

size_t gp_target_named(const char *name, pid_t *pid)
{
    enum { KEPT = 15 }; // bytes of a name that the kernel keeps: a longer one could be another's
    char comm[64];
    size_t count = 0;
    DIR *processes = strlen(name) <= KEPT ? opendir("/proc") : NULL;
    for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
        gp_target_t target = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};
        if (target.pid <= 0 || target.pid == getpid() || !gp_target_read(target.pid, "comm", comm, sizeof(comm), NULL))
            continue;
        comm[strcspn(comm, "\n")] = '\0';
        if (strcmp(comm, name) != 0 || live_target_read_status(&target) != (int)target.pid ||
            (geteuid() != 0 && geteuid() != target.uid))
            continue;
        *pid = target.pid;
        count++;
    }
    if (processes != NULL)
        closedir(processes);
    return count;
}

bool gp_target_is_there(const gp_target_t *target)
{
    char text[TEXT_SIZE];
    return gp_target_read(target->pid, "stat", text, sizeof(text), NULL) && gp_census_start_time(text) == target->start;
}

bool gp_target_is_stopped(const gp_target_t *target)
{
    char text[TEXT_SIZE];
    const char *name_end = gp_target_read(target->pid, "stat", text, sizeof(text), NULL) ? strrchr(text, ')') : NULL;
    // By us it is for a moment only.
    return !gp_pause_others_holds(target->pid) && name_end != NULL &&
           (strncmp(name_end, ") T", 3) == 0 || strncmp(name_end, ") t", 3) == 0);
}

static bool live_target_differ(pid_t pid, const char *name)
{
    struct stat mine, theirs;
    char own[GP_TARGET_ENTRY_SIZE], other[GP_TARGET_ENTRY_SIZE];
    snprintf(own, sizeof(own), "/proc/self/%s", name);
    gp_target_path(pid, name, other);
    return stat(own, &mine) == 0 && stat(other, &theirs) == 0 &&
           (mine.st_dev != theirs.st_dev || mine.st_ino != theirs.st_ino);
}

// The offset of the clock since boot in a process' time namespace. The kernel shows its children's, which is the same
// unless it has just made another one for them. Returns whether it is known. Source: time_namespaces(7).
static bool live_target_boot_offset_ns(const char *pid, int64_t *ns)
{
    char path[64], text[256] = "";
    struct stat own, children;
    snprintf(path, sizeof(path), "/proc/%s/ns/time", pid);
    bool is_known = stat(path, &own) == 0;
    snprintf(path, sizeof(path), "/proc/%s/ns/time_for_children", pid);
    is_known = is_known && stat(path, &children) == 0 && own.st_ino == children.st_ino;
    snprintf(path, sizeof(path), "/proc/%s/timens_offsets", pid);
    int fd = is_known ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    const char *line = got > 0 ? strstr(text, "boottime") : NULL;
    int64_t seconds = 0, rest = 0;
    if (line == NULL || sscanf(line, "boottime %" SCNd64 " %" SCNd64, &seconds, &rest) != 2)
        return false;
    *ns = seconds * 1000000000 + rest;
    return true;
}

bool gp_target_began_at(const gp_target_t *target, uint64_t ticks)
{
    char pid[16];
    int64_t ours, theirs;
    snprintf(pid, sizeof(pid), "%d", (int)target->pid);
    if (!live_target_differ(target->pid, "ns/time"))
        return ticks == target->start;
    if (!live_target_boot_offset_ns("self", &ours) || !live_target_boot_offset_ns(pid, &theirs))
        return false;
    int64_t there = (int64_t)target->start + (theirs - ours) / (1000000000 / sysconf(_SC_CLK_TCK));
    return (int64_t)ticks >= there - 1 && (int64_t)ticks <= there + 1; // both are rounded
}

bool gp_target_has_other_root(const gp_target_t *target)
{
    return live_target_differ(target->pid, "ns/mnt") || live_target_differ(target->pid, "root");
}

bool gp_target_has_other_users(const gp_target_t *target)
{
    return live_target_differ(target->pid, "ns/user");
}

// A user as the process knows it. Source: user_namespaces(7).
static uid_t live_target_uid_there(const gp_target_t *target, uid_t uid)
{
    char text[TEXT_SIZE];
    unsigned inside, outside, count;
    int length;
    if (!gp_target_has_other_users(target) || !gp_target_read(target->pid, "uid_map", text, sizeof(text), NULL))
        return uid;
    for (const char *at = text; sscanf(at, "%u %u %u%n", &inside, &outside, &count, &length) == 3; at += length)
        if (uid >= outside && uid - outside < count)
            return uid - outside + inside;
    return uid;
}

typedef struct look {
    gp_census_place_look_t *look;
    void *argument;
} look_t;

// Look at a place of our own, which is tidied up besides.
static bool live_target_look_at_ours(int directory, void *argument)
{
    const look_t *look = argument;
    gp_census_place_tidy(directory);
    gp_control_socket_tidy(directory, gp_census_name_space());
    return look->look(directory, look->argument);
}

// $XDG_RUNTIME_DIR as the process was started with; NULL = none, or it may not be read.
static const char *live_target_runtime_of(const gp_target_t *target, char *text, size_t size)
{
    static const char name[] = "XDG_RUNTIME_DIR=";
    size_t length;
    if (!gp_target_read(target->pid, "environ", text, size, &length))
        return getenv("XDG_RUNTIME_DIR");
    for (const char *at = text; at < text + length; at += strlen(at) + 1)
        if (strncmp(at, name, sizeof(name) - 1) == 0)
            return at + sizeof(name) - 1;
    return NULL;
}

// Below one directory, seen from the process' root and from ours.
static bool live_target_look_in(const gp_target_t *target, const char *runtime, uid_t uid, gp_census_place_look_t *look,
                                void *argument)
{
    const char *path = runtime != NULL ? runtime : "/tmp";
    look_t ours = {look, argument};
    int parent = path[0] == '/' ? gp_target_root_open(target->pid, path, O_PATH | O_DIRECTORY) : -1;
    bool found = parent >= 0 &&
                 gp_census_place_each(parent, runtime != NULL, live_target_uid_there(target, uid), uid, look, argument);
    if (parent >= 0)
        close(parent);
    parent = !found && path[0] == '/' ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (parent < 0)
        return found;
    found = gp_census_place_each(parent, runtime != NULL, live_target_uid_there(target, uid), uid,
                                 live_target_look_at_ours, &ours);
    close(parent);
    return found;
}

bool gp_target_each_place(const gp_target_t *target, gp_census_place_look_t *look, void *argument)
{
    char *text = malloc(ENVIRONMENT_SIZE);
    bool found = false;
    if (text == NULL)
        return false;
    const char *runtime = live_target_runtime_of(target, text, ENVIRONMENT_SIZE);
    found = (runtime != NULL && live_target_look_in(target, runtime, target->uid, look, argument)) ||
            live_target_look_in(target, NULL, target->uid, look, argument);
    // A service that gave up its rights after its start has its place among the former user's.
    if (!found && geteuid() != target->uid)
        found = (runtime != NULL && live_target_look_in(target, runtime, geteuid(), look, argument)) ||
                live_target_look_in(target, NULL, geteuid(), look, argument);
    free(text);
    return found;
}
