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
#include "trace/span.h"

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

// Around fork, in two steps. The outer one keeps starting, stopping and the collector out: they allocate under their
// locks, so these are taken before the program's fork handlers run and given back after them: an allocator that has
// handlers (jemalloc) holds its own locks in between. The inner one keeps threads, coroutines and calls still; their
// locks are never held while memory is allocated: it is as close around the fork as can be, so that the program's
// handlers may start threads, wait for their end, and let them run.
static void before_outer(void)
{
    gp_sampler_before_fork();
    gp_drain_enter();
    gp_profiles_before_fork();
}

static void before_inner(void)
{
    pthread_mutex_lock(&gp_registry_lock);
    gp_exact_before_fork();
    gp_threads_hold_starts();
    gp_sampler_hold_timers();
}

static void after_inner(bool is_child)
{
    if (is_child) {
        gp_process_claim();
        gp_sampler_abandon_timers();
        gp_thread_after_fork();
        gp_thread_forget_own();
        gp_collector_after_fork();
    }
    gp_sampler_let_timers_go();
    gp_threads_let_starts_go();
    gp_exact_after_fork(is_child);
    pthread_mutex_unlock(&gp_registry_lock);
}

static void after_outer(bool is_child)
{
    gp_process_fork_ends();
    if (is_child)
        gp_profiles_in_child();
    gp_drain_leave();
    if (is_child) {
        gp_coro_recycle(gp_coro_take_retired()); // what they did is the parent's to report
        gp_spans_after_fork();
        gp_session_in_child();
    }
    gp_sampler_after_fork(is_child);
}

// Fork handlers registered last run first before the fork and last after it. So the outer step is registered by the
// first fork() itself, and the inner one when the library is loaded. Where a fork does not come through fork()
// (forkpty), the handlers of the inner step do both; which of the two holds is settled anew for each fork.
static __thread enum { NEITHER, OUTER, INNER } forker __attribute__((tls_model("initial-exec")));

static void prepare_outer(void)
{
    before_outer();
    gp_process_fork_begins();
    forker = OUTER;
}

static void prepare_inner(void)
{
    if (forker != OUTER) {
        before_outer();
        gp_process_fork_begins();
        forker = INNER;
    }
    before_inner();
}

static void finish_inner(bool is_child)
{
    after_inner(is_child);
    if (forker == INNER)
        after_outer(is_child);
}

static void finish_outer(bool is_child)
{
    if (forker == OUTER)
        after_outer(is_child);
    forker = NEITHER;
}

static void parent_inner(void)
{
    finish_inner(false);
}

static void child_inner(void)
{
    finish_inner(true);
}

static void parent_outer(void)
{
    finish_outer(false);
}

static void child_outer(void)
{
    finish_outer(true);
}

static void register_outer(void)
{
    pthread_atfork(prepare_outer, parent_outer, child_outer);
}

PROF_API pid_t fork(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    resolve_if_early();
    forker = NEITHER;
    if (is_ready)
        pthread_once(&once, register_outer);
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
    pthread_atfork(prepare_inner, parent_inner, child_inner);
    (void)at_quick_exit(gp_process_ending); // it runs no destructors; the first registered runs last
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

static void (*_Atomic at_end)(void);

void gp_process_at_end(void (*call)(void))
{
    atomic_store_explicit(&at_end, call, memory_order_release);
}

void gp_process_ending(void)
{
    if (!gp_process_is_open())
        return;
    void (*call)(void) = atomic_load_explicit(&at_end, memory_order_acquire);
    if (call != NULL)
        call();
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
