// SPDX-License-Identifier: MIT
#include "process/exec.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "coro/process_id.h"
#include "greenprof/prof.h"
#include "process/exec_foreign.h"
#include "process/host_mask.h"
#include "process/process.h"
#include "signal/mask.h"

extern char **environ;

typedef int execve_t(const char *, char *const[], char *const[]);
typedef int fexecve_t(int, char *const[], char *const[]);
typedef int spawn_t(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                    char *const[]);

static struct {
    execve_t *execve, *execvpe;
    fexecve_t *fexecve;
    spawn_t *spawn, *spawnp;
} next;

void gp_exec_resolve(void)
{
    next.execvpe = (execve_t *)(uintptr_t)dlsym(RTLD_NEXT, "execvpe");
    next.fexecve = (fexecve_t *)(uintptr_t)dlsym(RTLD_NEXT, "fexecve");
    next.spawn = (spawn_t *)(uintptr_t)dlsym(RTLD_NEXT, "posix_spawn");
    next.spawnp = (spawn_t *)(uintptr_t)dlsym(RTLD_NEXT, "posix_spawnp");
    next.execve = (execve_t *)(uintptr_t)dlsym(RTLD_NEXT, "execve"); // the last: the others are there, too
}

static void exec_resolve_if_early(void)
{
    if (next.execve == NULL)
        gp_exec_resolve();
}

static int exec_failed(void)
{
    gp_process_after_failed_exec();
    return -1;
}

// Not by the names below: a core that is loaded late (attach) would call the C library's.
static int exec_path(const char *path, char *const argv[], char *const envp[])
{
    exec_resolve_if_early();
    gp_process_before_exec();
    GP_EXEC_ENVIRONMENT(envp, gp_exec_is_foreign(AT_FDCWD, path));
    next.execve(path, argv, envp);
    return exec_failed();
}

PROF_API int execve(const char *path, char *const argv[], char *const envp[])
{
    return exec_path(path, argv, envp);
}

PROF_API int execv(const char *path, char *const argv[])
{
    return exec_path(path, argv, environ);
}

static int exec_found(const char *file, char *const argv[], char *const envp[])
{
    exec_resolve_if_early();
    gp_process_before_exec();
    GP_EXEC_ENVIRONMENT(envp, gp_exec_found_is_foreign(file));
    next.execvpe(file, argv, envp);
    return exec_failed();
}

PROF_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
    return exec_found(file, argv, envp);
}

PROF_API int execvp(const char *file, char *const argv[])
{
    return exec_found(file, argv, environ);
}

PROF_API int fexecve(int fd, char *const argv[], char *const envp[])
{
    exec_resolve_if_early();
    gp_process_before_exec();
    GP_EXEC_ENVIRONMENT(envp, gp_exec_is_foreign(fd, ""));
    next.fexecve(fd, argv, envp);
    return exec_failed();
}

// The variadic forms: count, then copy the arguments into an array as execv() wants it.
#define ARGUMENTS(first, list, argv)                                                                                   \
    size_t count = 1;                                                                                                  \
    va_start(list, first);                                                                                             \
    while (va_arg(list, char *) != NULL)                                                                               \
        count++;                                                                                                       \
    va_end(list);                                                                                                      \
    char *argv[count + 1];                                                                                             \
    argv[0] = (char *)(uintptr_t)(first);                                                                              \
    va_start(list, first);                                                                                             \
    for (size_t i = 1; i <= count; i++)                                                                                \
    argv[i] = va_arg(list, char *)

PROF_API int execl(const char *path, const char *first, ...)
{
    va_list list;
    ARGUMENTS(first, list, argv);
    va_end(list);
    return exec_path(path, argv, environ);
}

PROF_API int execlp(const char *file, const char *first, ...)
{
    va_list list;
    ARGUMENTS(first, list, argv);
    va_end(list);
    return exec_found(file, argv, environ);
}

PROF_API int execle(const char *path, const char *first, ...)
{
    va_list list;
    ARGUMENTS(first, list, argv);
    char **envp = va_arg(list, char **);
    va_end(list);
    return exec_path(path, argv, envp);
}

// A child of posix_spawn() inherits the caller's mask: for so long, the mask is the one that the program believes in.
static bool exec_hold_mask(void)
{
    bool is_held = gp_mask_believed != 0 && gp_process_is_mine();
    if (is_held)
        gp_host_mask_before_exec();
    return is_held;
}

static void exec_let_mask_go(bool is_held)
{
    if (is_held)
        gp_host_mask_after_failed_exec();
}

// system() and popen() begin a shell by glibc's own way, which leads by none of these: that shell is a program of the
// system, and comes here for what it begins.
PROF_API int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    exec_resolve_if_early();
    GP_EXEC_ENVIRONMENT(envp, gp_exec_is_foreign(AT_FDCWD, path));
    bool is_held = exec_hold_mask();
    int error = next.spawn(pid, path, actions, attributes, argv, envp);
    exec_let_mask_go(is_held);
    return error;
}

PROF_API int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    exec_resolve_if_early();
    GP_EXEC_ENVIRONMENT(envp, gp_exec_found_is_foreign(file));
    bool is_held = exec_hold_mask();
    int error = next.spawnp(pid, file, actions, attributes, argv, envp);
    exec_let_mask_go(is_held);
    return error;
}
