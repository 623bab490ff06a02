// SPDX-License-Identifier: MIT
// run: where the library is, and what tells this run from others.
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "greenprof/prof.h"
#include "message.h"
#include "run_checks.h"

#define CORE_NAME       "libgreenprof-core.so.0"
#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)
#define VERSION         TEXT_OF(PROF_VERSION_MAJOR) "." TEXT_OF(PROF_VERSION_MINOR) "." TEXT_OF(PROF_VERSION_PATCH)
// As seen from where pip puts packages: the library of a wheel whose metadata are of this command's version
// (tools/wheel).
#define PACKAGED "greenprof-" VERSION ".dist-info/../greenprof/lib/" CORE_NAME

// The loader takes LD_PRELOAD apart at colons and spaces, and there is no way to quote them.
static int run_paths_use_core(const char *found, char path[PATH_MAX])
{
    if (strpbrk(found, ": \t") != NULL)
        return gp_fail(found, "cannot be preloaded: its path has a colon or a space");
    snprintf(path, PATH_MAX, "%s", found);
    return 0;
}

// pip puts packages there, from the directory of its commands: those of a venv, a user or a prefix; of --target.
static bool run_paths_find_packaged(const char *directory, char found[PATH_MAX])
{
    static const char *const places[] = {"/../lib*/python3*/*-packages/" PACKAGED, "/../" PACKAGED};
    char pattern[2 * PATH_MAX + 256];
    size_t len = 0;
    for (; *directory != '\0' && len < (size_t)2 * PATH_MAX; pattern[len++] = *directory++)
        if (strchr("*?[\\", *directory) != NULL)
            pattern[len++] = '\\';
    bool is_there = false;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !is_there; i++) {
        glob_t paths;
        snprintf(pattern + len, sizeof(pattern) - len, "%s", places[i]);
        is_there = glob(pattern, 0, NULL, &paths) == 0 && realpath(paths.gl_pathv[0], found) != NULL;
        globfree(&paths);
    }
    return is_there;
}

int gp_run_find_core(const char *program, bool is_musl, char path[PATH_MAX])
{
    // From the directory of the command: as installed, then as built.
    static const char *const places[] = {"/../" GP_INSTALL_LIBDIR "/", "/../lib/", "/../../src/", "/"};
    const char *given = getenv("GREENPROF_CORE");
    char self[PATH_MAX], candidate[PATH_MAX + 256], found[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (given != NULL && given[0] != '\0') {
        if (realpath(given, found) == NULL)
            return gp_fail(given, "GREENPROF_CORE: %s", strerror(errno));
        return run_paths_use_core(found, path);
    }
    if (len <= 0)
        return gp_fail("/proc/self/exe", "%s", strerror(errno));
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    if (!is_musl && run_paths_find_packaged(self, found))
        return run_paths_use_core(found, path);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(candidate, sizeof(candidate), "%s%s%s" CORE_NAME, self, places[i], is_musl ? "greenprof/musl/" : "");
        if (realpath(candidate, found) != NULL)
            return run_paths_use_core(found, path);
    }
    if (is_musl)
        return gp_fail(program,
                       "is a musl program, and greenprof's library for musl is not installed beside this command");
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
