// SPDX-License-Identifier: MIT
#include "live_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/census_place.h"
#include "capture/control_place.h"
#include "message.h"
#include "quiet.h"
#include "target_root.h"

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
static int read_status(gp_target_t *target)
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
    int leader = read_status(target);
    if (leader == 0 || !gp_target_read(pid, "stat", text, sizeof(text), NULL))
        return gp_fail(subject, "no such process");
    if (leader != (int)pid)
        return gp_fail(subject, "it is a thread of process %d", leader);
    target->start = gp_census_start_time(text);
    if (geteuid() != 0 && geteuid() != target->uid)
        return gp_fail(subject, "the process belongs to another user: %s", strerror(EPERM));
    return 0;
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
    return !gp_quiet_holds(target->pid) && name_end != NULL &&
           (strncmp(name_end, ") T", 3) == 0 || strncmp(name_end, ") t", 3) == 0);
}

static bool differ(pid_t pid, const char *name)
{
    struct stat mine, theirs;
    char own[GP_TARGET_ENTRY_SIZE], other[GP_TARGET_ENTRY_SIZE];
    snprintf(own, sizeof(own), "/proc/self/%s", name);
    gp_target_path(pid, name, other);
    return stat(own, &mine) == 0 && stat(other, &theirs) == 0 &&
           (mine.st_dev != theirs.st_dev || mine.st_ino != theirs.st_ino);
}

bool gp_target_has_other_root(const gp_target_t *target)
{
    return differ(target->pid, "ns/mnt") || differ(target->pid, "root");
}

bool gp_target_has_other_users(const gp_target_t *target)
{
    return differ(target->pid, "ns/user");
}

// A user as the process knows it. Source: user_namespaces(7).
static uid_t uid_there(const gp_target_t *target, uid_t uid)
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

// $XDG_RUNTIME_DIR as the process was started with; NULL = none, or it may not be read.
static const char *runtime_of(const gp_target_t *target, char *text, size_t size)
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

static int open_there(const gp_target_t *target, const char *path, uid_t uid)
{
    return gp_census_place_take(gp_target_root_open(target->pid, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), uid);
}

// One directory, seen from the process' root and from ours.
static bool look_in(const gp_target_t *target, const char *runtime, uid_t uid,
                    bool (*look)(int directory, void *argument), void *argument)
{
    char path[GP_PLACE_SIZE];
    if (!gp_census_place(runtime, uid_there(target, uid), path, sizeof(path)))
        return false;
    gp_census_place_tidy(path, uid);
    for (int i = 0; i < 2; i++) {
        int directory = i == 0 ? open_there(target, path, uid) : gp_census_place_open(path, uid);
        if (directory < 0)
            continue;
        if (i == 1)
            gp_control_socket_tidy(directory, gp_census_name_space());
        if (look(directory, argument))
            return true;
        close(directory);
    }
    return false;
}

bool gp_target_each_place(const gp_target_t *target, bool (*look)(int directory, void *argument), void *argument)
{
    char *text = malloc(ENVIRONMENT_SIZE);
    bool found = false;
    if (text == NULL)
        return false;
    const char *runtime = runtime_of(target, text, ENVIRONMENT_SIZE);
    found = (runtime != NULL && look_in(target, runtime, target->uid, look, argument)) ||
            look_in(target, NULL, target->uid, look, argument);
    // A service that gave its rights up after it was started has its place among those of the user it was.
    if (!found && geteuid() != target->uid)
        found = (runtime != NULL && look_in(target, runtime, geteuid(), look, argument)) ||
                look_in(target, NULL, geteuid(), look, argument);
    free(text);
    return found;
}
