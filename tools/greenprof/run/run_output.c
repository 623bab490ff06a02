// SPDX-License-Identifier: MIT
// run: the place of the capture, whether it can be written there, and a file that is there already.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "message.h"
#include "run_checks.h"

static char put_away[PATH_MAX + 8], put_away_from[PATH_MAX]; // "" = nothing

int gp_run_replace_pid(const char *path, char out[PATH_MAX])
{
    size_t len = 0;
    for (const char *at = path; *at != '\0'; at++) {
        int added = at[0] == '%' && at[1] == 'p' ? snprintf(out + len, PATH_MAX - len, "%ld", (long)getpid())
                                                 : snprintf(out + len, PATH_MAX - len, "%c", *at);
        if (added < 0 || len + (size_t)added >= PATH_MAX)
            return -1;
        len += (size_t)added;
        at += at[0] == '%' && at[1] == 'p';
    }
    out[len] = '\0';
    return 0;
}

// Nothing is left behind here: the library creates it, when there is something to write.
static int run_output_try_to_open(const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlink(file);
    else if (errno == EEXIST)
        fd = open(file, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return gp_fail(file, "%s", strerror(errno));
    close(fd);
    return 0;
}

static int run_output_check_writable(const char *path)
{
    char file[PATH_MAX], directory[PATH_MAX];
    struct statvfs space;
    struct stat status;
    if (gp_run_replace_pid(path, file) < 0)
        return gp_fail(path, "%s", strerror(ENAMETOOLONG));
    strcpy(directory, file);
    char *slash = strrchr(directory, '/');
    slash[slash == directory] = '\0';
    if (stat(directory, &status) < 0)
        return gp_fail(file, "its directory: %s", strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return gp_fail(file, "its directory: %s", strerror(ENOTDIR));
    if (access(directory, W_OK | X_OK) < 0)
        return gp_fail(file, "its directory: %s", strerror(errno));
    if (statvfs(directory, &space) == 0 && (geteuid() == 0 ? space.f_bfree : space.f_bavail) == 0 &&
        space.f_blocks > 0) // some file systems do not count
        return gp_fail(file, "%s", strerror(ENOSPC));
    if (slash[1] == '\0' && slash != directory)
        return gp_fail(file, "%s", strerror(EISDIR));
    if (stat(file, &status) < 0)
        return errno == ENOENT ? run_output_try_to_open(file) : gp_fail(file, "%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return gp_fail(file, "%s", strerror(EISDIR));
    if (!S_ISREG(status.st_mode))
        return gp_fail(file, "is not a regular file");
    if (status.st_size == 0 && ((status.st_uid != geteuid() && status.st_uid != 0) || status.st_nlink > 1))
        return gp_fail(file, "is there already, and is %s",
                       status.st_nlink > 1 ? "a file with several names" : "another user's");
    return run_output_try_to_open(file);
}

int gp_run_output_path(const char *output, const char *program, char path[PATH_MAX])
{
    char directory[PATH_MAX] = "";
    const char *slash = strrchr(program, '/');
    int len;
    if (output != NULL && (output[0] == '\0' || strcmp(output, "-") == 0))
        return gp_fail("-o", "a capture needs a file with a name");
    if ((output == NULL || output[0] != '/') && getcwd(directory, sizeof(directory)) == NULL)
        return gp_fail("current directory", "%s", strerror(errno));
    if (strcmp(directory, "/") == 0)
        directory[0] = '\0';
    if (output == NULL)
        len = snprintf(path, PATH_MAX, "%s/%s.greenprof", directory, slash ? slash + 1 : program);
    else if (output[0] == '/')
        len = snprintf(path, PATH_MAX, "%s", output);
    else
        len = snprintf(path, PATH_MAX, "%s/%s", directory, output);
    if (len < 0 || len >= PATH_MAX)
        return gp_fail(output ? output : program, "%s", strerror(ENAMETOOLONG));
    return run_output_check_writable(path);
}

int gp_run_put_old_away(const char *path)
{
    char file[PATH_MAX];
    struct stat status;
    // A link stays: the new capture is to be where it points to.
    if (gp_run_replace_pid(path, file) < 0 || realpath(file, put_away_from) == NULL ||
        stat(put_away_from, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return 0;
    snprintf(put_away, sizeof(put_away), "%s.old", put_away_from);
    if (rename(put_away_from, put_away) == 0)
        return 0;
    put_away[0] = '\0'; // another user's, in a directory such as /tmp, cannot be moved
    return gp_fail(file, "is there already, and cannot be put away: %s", strerror(errno));
}

void gp_run_take_old_back(void)
{
    if (put_away[0] != '\0')
        rename(put_away, put_away_from);
}
