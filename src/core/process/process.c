// SPDX-License-Identifier: MIT
#include "process/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/sampler.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "exact/exact_site.h"
#include "exact/recorder.h"
#include "greenprof/prof.h"
#include "process/host_mask.h"
#include "profile/profile.h"
#include "session/session.h"
#include "signal/ticks.h"

extern char **environ;

typedef int execve_t(const char *, char *const[], char *const[]);
typedef int fexecve_t(int, char *const[], char *const[]);
typedef void exit_t(int);
typedef pid_t fork_t(void);

static bool is_ready;

// Looked up when the library is loaded: later the loader's lock may be held by others, or the caller be in a handler.
static struct {
    execve_t *execve, *execvpe;
    fexecve_t *fexecve;
    exit_t *_exit, *_Exit;
    fork_t *fork;
} next;

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void resolve(void)
{
    next.execve = (execve_t *)(uintptr_t)real("execve");
    next.execvpe = (execve_t *)(uintptr_t)real("execvpe");
    next.fexecve = (fexecve_t *)(uintptr_t)real("fexecve");
    next._exit = (exit_t *)(uintptr_t)real("_exit");
    next._Exit = (exit_t *)(uintptr_t)real("_Exit");
    next.fork = (fork_t *)(uintptr_t)real("fork");
}

static void resolve_if_early(void)
{
    if (next.fork == NULL)
        resolve();
}

static void before(void)
{
    gp_sampler_before_fork();
    pthread_mutex_lock(&gp_drain_lock);
    gp_profiles_before_fork();
    pthread_mutex_lock(&gp_registry_lock);
    gp_exact_before_fork();
}

static void parent(void)
{
    gp_exact_after_fork(false);
    pthread_mutex_unlock(&gp_registry_lock);
    pthread_mutex_unlock(&gp_drain_lock);
    gp_sampler_after_fork(false);
}

static void child(void)
{
    gp_process_claim();
    gp_sampler_abandon_timers();
    gp_thread_after_fork();
    gp_thread_forget_own();
    gp_collector_after_fork();
    gp_exact_after_fork(true);
    gp_profiles_in_child();
    pthread_mutex_unlock(&gp_registry_lock);
    pthread_mutex_unlock(&gp_drain_lock);
    gp_coro_recycle(gp_coro_take_retired()); // the parent reports what they did
    gp_session_in_child();
    gp_sampler_after_fork(true);
}

// Fork handlers registered last run first before the fork and last after it, which is where ours must be: an allocator
// that has handlers of its own (jemalloc) holds its locks in between. So they are registered by the first fork()
// itself; those registered at load are for forks that do not come through fork(), forkpty()'s for one. Which of the two
// acts is settled anew for each fork.
static __thread enum { NOT_FORKING, LATE, EARLY } forker __attribute__((tls_model("initial-exec")));

static void before_late(void)
{
    before();
    forker = LATE;
}

static void before_early(void)
{
    if (forker == LATE)
        return;
    before();
    forker = EARLY;
}

static void parent_late(void)
{
    if (forker == LATE)
        parent();
    forker = NOT_FORKING;
}

static void parent_early(void)
{
    if (forker == EARLY)
        parent();
}

static void child_late(void)
{
    if (forker == LATE)
        child();
    forker = NOT_FORKING;
}

static void child_early(void)
{
    if (forker == EARLY)
        child();
}

static void register_late(void)
{
    pthread_atfork(before_late, parent_late, child_late);
}

PROF_API pid_t fork(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    resolve_if_early();
    forker = NOT_FORKING;
    if (is_ready)
        pthread_once(&once, register_late);
    return next.fork();
}

void gp_process_init(void)
{
    if (is_ready)
        return;
    is_ready = true;
    gp_process_claim();
    gp_sink_add(&gp_profile_sink);
    gp_sink_add(&gp_exact_sink);
    gp_ticks_begin();
    gp_thread_hook_init();
    resolve();
    pthread_atfork(before_early, parent_early, child_early);
    at_quick_exit(gp_process_ending); // it runs no destructors; the first registered runs last
    gp_thread_attach();
}

void gp_process_before_exec(void)
{
    if (!gp_process_is_mine())
        return;
    gp_session_before_exec();
    gp_sampler_before_exec();
    gp_host_mask_before_exec();
}

void gp_process_after_failed_exec(void)
{
    int saved_errno = errno;
    if (gp_process_is_mine()) {
        gp_host_mask_after_failed_exec();
        gp_sampler_after_failed_exec();
    }
    errno = saved_errno;
}

static int failed_exec(void)
{
    gp_process_after_failed_exec();
    return -1;
}

PROF_API int execve(const char *path, char *const argv[], char *const envp[])
{
    resolve_if_early();
    gp_process_before_exec();
    next.execve(path, argv, envp);
    return failed_exec();
}

PROF_API int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

PROF_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
    resolve_if_early();
    gp_process_before_exec();
    next.execvpe(file, argv, envp);
    return failed_exec();
}

PROF_API int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

PROF_API int fexecve(int fd, char *const argv[], char *const envp[])
{
    resolve_if_early();
    gp_process_before_exec();
    next.fexecve(fd, argv, envp);
    return failed_exec();
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
    return execve(path, argv, environ);
}

PROF_API int execlp(const char *file, const char *first, ...)
{
    va_list list;
    ARGUMENTS(first, list, argv);
    va_end(list);
    return execvpe(file, argv, environ);
}

PROF_API int execle(const char *path, const char *first, ...)
{
    va_list list;
    ARGUMENTS(first, list, argv);
    char **envp = va_arg(list, char **);
    va_end(list);
    return execve(path, argv, envp);
}

void gp_process_ending(void)
{
    if (gp_process_is_mine())
        gp_session_ending();
}

// Programs that leave by _exit() run no destructors. Only atomics and a futex are used: it may come from a handler.
PROF_API void _exit(int status)
{
    resolve_if_early();
    gp_process_ending();
    next._exit(status);
    __builtin_unreachable();
}

PROF_API void _Exit(int status)
{
    resolve_if_early();
    gp_process_ending();
    next._Exit(status);
    __builtin_unreachable();
}
