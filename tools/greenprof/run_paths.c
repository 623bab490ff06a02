// SPDX-License-Identifier: MIT
// run: where the capture goes, and where the library is.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "run.h"

#define CORE_NAME "libgreenprof-core.so.0"

// The path as this process will write it: %p replaced. Returns -1 when it is too long.
static int replace_pid(const char *path, char out[PATH_MAX])
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

// Nothing is created here: the library does that, when there is something to write.
static int check_writable(const char *path)
{
    char file[PATH_MAX], directory[PATH_MAX];
    struct statvfs space;
    struct stat status;
    if (replace_pid(path, file) < 0)
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
        return errno == ENOENT ? 0 : gp_fail(file, "%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return gp_fail(file, "%s", strerror(EISDIR));
    if (!S_ISREG(status.st_mode))
        return gp_fail(file, "is not a regular file");
    if (access(file, W_OK) < 0)
        return gp_fail(file, "%s", strerror(errno));
    return 0;
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
    return check_writable(path);
}

// The loader takes LD_PRELOAD apart at colons and spaces, and there is no way to quote them.
static int use_core(const char *found, char path[PATH_MAX])
{
    if (strpbrk(found, ": \t") != NULL)
        return gp_fail(found, "cannot be preloaded: its path has a colon or a space");
    snprintf(path, PATH_MAX, "%s", found);
    return 0;
}

int gp_run_find_core(char path[PATH_MAX])
{
    // From the directory of the command: as installed, then as built.
    static const char *const places[] = {"/../" GP_INSTALL_LIBDIR "/", "/../lib/", "/../../src/", "/"};
    const char *given = getenv("GREENPROF_CORE");
    char self[PATH_MAX], candidate[PATH_MAX + 256], found[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (given != NULL && given[0] != '\0') {
        if (realpath(given, found) == NULL)
            return gp_fail(given, "GREENPROF_CORE: %s", strerror(errno));
        return use_core(found, path);
    }
    if (len <= 0)
        return gp_fail("/proc/self/exe", "%s", strerror(errno));
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(candidate, sizeof(candidate), "%s%s" CORE_NAME, self, places[i]);
        if (realpath(candidate, found) != NULL)
            return use_core(found, path);
    }
    return gp_fail(CORE_NAME, "not found beside %s; GREENPROF_CORE can name it", self);
}

void gp_run_session(char text[GP_RUN_SESSION_SIZE])
{
    uint8_t bytes[16];
    struct timespec now;
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        clock_gettime(CLOCK_REALTIME, &now); // unique enough: it only keeps runs apart
        snprintf(text, GP_RUN_SESSION_SIZE, "%016llx%08lx%08lx", (unsigned long long)now.tv_sec,
                 (unsigned long)now.tv_nsec, (unsigned long)getpid());
        return;
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}
