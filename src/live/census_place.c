// SPDX-License-Identifier: MIT
#include "live/census_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"

enum { NAME_SIZE = 40, MAKE_TRIES = 10 };

#define COMMON "/tmp"

static void census_place_name_place(bool is_runtime, uid_t uid, char name[NAME_SIZE])
{
    if (is_runtime)
        snprintf(name, NAME_SIZE, "greenprof");
    else
        snprintf(name, NAME_SIZE, "greenprof-%u", (unsigned)uid);
}

// The user's alone? Returns the descriptor; -EPERM where it is not, or another negative errno value.
static int census_place_take(int parent, const char *name, uid_t uid)
{
    struct stat status;
    int fd = gp_descriptor_open(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) == 0 && status.st_uid == uid && (status.st_mode & 077) == 0)
        return fd;
    close(fd);
    return -EPERM;
}

bool gp_census_place_each(int parent, bool is_runtime, uid_t name, uid_t uid, gp_census_place_look_t *look,
                          void *argument)
{
    char plain[NAME_SIZE];
    census_place_name_place(is_runtime, name, plain);
    int fd = census_place_take(parent, plain, uid);
    bool found = fd >= 0 && look(fd, argument);
    if (fd >= 0 && !found)
        close(fd);
    int again = found || is_runtime ? -1 : gp_descriptor_open(parent, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;
    size_t length = strlen(plain);
    // -Wanalyzer-possible-null-argument: the first condition
    for (struct dirent *entry; entries != NULL && !found && (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, plain, length) != 0 || entry->d_name[length] != '.')
            continue;
        fd = census_place_take(parent, entry->d_name, uid);
        found = fd >= 0 && look(fd, argument);
        if (fd >= 0 && !found)
            close(fd);
    }
    if (entries != NULL)
        closedir(entries);
    else if (again >= 0)
        close(again);
    return found;
}

// A directory that another user owns, or may write to, is useless at this user's will.
static bool census_place_is_fit(int runtime)
{
    struct stat status;
    return fstat(runtime, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0) &&
           ((status.st_mode & 022) == 0 || (status.st_mode & S_ISVTX));
}

static int census_place_make_another(int parent, const char *plain)
{
    char name[NAME_SIZE];
    uint64_t chance;
    int fd = -EIO;
    for (int i = 0; fd < 0 && i < MAKE_TRIES; i++) {
        if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != (ssize_t)sizeof(chance))
            return -EIO;
        snprintf(name, sizeof(name), "%.20s.%016" PRIx64, plain, chance);
        fd = mkdirat(parent, name, 0700) == 0 ? census_place_take(parent, name, geteuid()) : -errno;
    }
    return fd;
}

// /proc/self is empty once the main thread has ended.
static int census_place_name_of(int fd, char *path)
{
    char link[48];
    snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
    ssize_t length = readlink(link, path, GP_PLACE_SIZE);
    if (length > 0 && length < GP_PLACE_SIZE) {
        path[length] = '\0';
        return fd;
    }
    close(fd);
    return length < 0 ? -ENOENT : -ENAMETOOLONG;
}

static bool census_place_keep(int directory, void *argument)
{
    *(int *)argument = directory;
    return true;
}

static int census_place_make_in(const char *runtime, char *path)
{
    char name[NAME_SIZE];
    int parent = gp_descriptor_open(AT_FDCWD, runtime != NULL ? runtime : COMMON, O_PATH | O_DIRECTORY, 0);
    if (parent < 0)
        return -errno;
    int fd = -EPERM;
    census_place_name_place(runtime != NULL, geteuid(), name);
    if (runtime == NULL || census_place_is_fit(parent)) {
        int error = mkdirat(parent, name, 0700) == 0 || errno == EEXIST ? 0 : -errno;
        if (!gp_census_place_each(parent, runtime != NULL, geteuid(), geteuid(), census_place_keep, &fd))
            fd = error != 0 ? error : runtime == NULL ? census_place_make_another(parent, name) : -EPERM;
    }
    close(parent);
    return fd < 0 ? fd : census_place_name_of(fd, path);
}

int gp_census_place_make(char *path)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int fd = runtime != NULL && runtime[0] == '/' ? census_place_make_in(runtime, path) : -ENOENT;
    return fd >= 0 ? fd : census_place_make_in(NULL, path);
}

static void census_place_marker_name(int pid, char name[24])
{
    snprintf(name, 24, "%d", pid);
}

int gp_census_marker_write(int directory, const gp_census_marker_t *marker)
{
    char name[24], text[160];
    census_place_marker_name(marker->pid, name);
    int length =
        snprintf(text, sizeof(text), "greenprof 1 pid %d start %" PRIu64 " tid %d signal %d space %" PRIu64 "\n",
                 marker->pid, marker->start, marker->tid, marker->signal_number, marker->name_space);
    unlinkat(directory, name, 0);
    int fd = gp_descriptor_open(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int error = write(fd, text, (size_t)length) == length ? 0 : -EIO;
    close(fd);
    if (error != 0)
        unlinkat(directory, name, 0);
    return error;
}

int gp_census_marker_read(int directory, int pid, gp_census_marker_t *marker)
{
    char name[24], text[160];
    census_place_marker_name(pid, name);
    int fd = gp_descriptor_open(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    int found = sscanf(text, "greenprof 1 pid %d start %" SCNu64 " tid %d signal %d space %" SCNu64, &marker->pid,
                       &marker->start, &marker->tid, &marker->signal_number, &marker->name_space);
    return found == 5 && marker->pid == pid ? 0 : -EBADMSG;
}

uint64_t gp_census_name_space(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

void gp_census_place_tidy(int directory)
{
    int again = gp_descriptor_open(directory, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;
    if (entries == NULL) {
        if (again >= 0)
            close(again);
        return;
    }
    uint64_t own = gp_census_name_space();
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        gp_census_marker_t marker;
        int pid = atoi(entry->d_name);
        if (pid > 0 && gp_census_marker_read(directory, pid, &marker) == 0 && marker.name_space == own &&
            kill(pid, 0) != 0 && errno == ESRCH)
            unlinkat(directory, entry->d_name, 0);
    }
    closedir(entries);
}

uint64_t gp_census_start_time(const char *stat)
{
    const char *at = strrchr(stat, ')'); // the name before may have spaces and parentheses itself
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

void gp_census_answer_name(int pid, uint32_t number, char *name, size_t size)
{
    snprintf(name, size, "census-%d-%08" PRIx32, pid, number);
}
