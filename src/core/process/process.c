// SPDX-License-Identifier: MIT
#include "process/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "collect/children_unprofiled.h"
#include "collect/collector.h"
#include "collect/sampler.h"
#include "collect/thread_timers.h"
#include "control/control.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/thread_rings.h"
#include "coro/threads.h"
#include "exact/exact_site.h"
#include "exact/recorder.h"
#include "greenprof/exact.h"
#include "greenprof/prof.h"
#include "process/aside.h"
#include "process/exec.h"
#include "process/host_mask.h"
#include "profile/profile.h"
#include "record/otel_context.h"
#include "record/session.h"
#include "signal/language.h"
#include "signal/ticks.h"
#include "trace/span.h"

extern char **environ;

typedef void exit_t(int);
typedef pid_t fork_t(void);
typedef int register_atfork_t(void (*)(void), void (*)(void), void (*)(void), void *);

static bool is_ready;

// Looked up when the library is loaded: later the loader's lock may be held by others, or the caller be in a handler.
static struct {
    exit_t *_exit, *_Exit;
    fork_t *fork, *_Fork;
} next;

static void *process_real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void process_resolve(void)
{
    gp_exec_resolve();
    next._exit = (exit_t *)(uintptr_t)process_real("_exit");
    next._Exit = (exit_t *)(uintptr_t)process_real("_Exit");
    next.fork = (fork_t *)(uintptr_t)process_real("fork");
    next._Fork = (fork_t *)(uintptr_t)process_real("_Fork");
}

static void process_resolve_if_early(void)
{
    if (next.fork == NULL)
        process_resolve();
}

// Around fork. No lock is held while the program's own fork handlers run: they may wait for threads that start and stop
// profiles, or end. Fork handlers registered last run first before the fork and last after it. The outer step, which is
// registered by the first fork() itself, says that a fork is under way, and waits until nothing is in the middle of a
// change; then threads and the collector stay out (gp_process_let_forks_by()) unless the handlers take long. The inner
// step, registered before any other, takes the locks, as close around the fork as can be.
//
// An allocator that has fork handlers (jemalloc) holds its own locks between the two steps: where a thread is in the
// middle of a change all the same, and waits for memory, the inner step gives up after a while, and the child is as one
// of _Fork(): it is left alone. So it is where the fork comes from a signal handler that interrupts a change.
//
// Where a fork does not come through fork() (forkpty), the handlers of the inner step do both; which of the two holds
// is settled anew for each fork.
enum { PATIENCE_S = 2, SYNC_NS = 100000000 };

enum { NEITHER, OUTER, INNER };

static __thread int forker __attribute__((tls_model("initial-exec")));
static __thread bool is_held __attribute__((tls_model("initial-exec")));
static __thread bool is_left __attribute__((tls_model("initial-exec"))); // it comes amid a change: the child is

static bool process_hold_changes(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    if (!gp_sampler_enter_until(&until))
        return false;
    if (gp_drain_enter_until(&until))
        return true;
    gp_sampler_leave();
    return false;
}

static void process_let_changes_go(void)
{
    gp_drain_leave();
    gp_sampler_leave();
}

static bool process_may_hold(void)
{
    return gp_process_is_mine() && gp_locks_held == 0;
}

static void process_prepare_outer(void)
{
    if (!process_may_hold())
        return;
    if (gp_profiles_are_put_off()) // the child has the profiles, and no ring
        gp_collector_sync_within(SYNC_NS);
    gp_process_fork_begins();
    forker = OUTER;
    if (process_hold_changes())
        process_let_changes_go();
}

static void process_prepare_inner(void)
{
    is_left = gp_process_is_mine() && gp_locks_held != 0;
    if (!process_may_hold())
        return;
    if (forker != OUTER) {
        gp_process_fork_begins();
        forker = INNER;
    }
    is_held = process_hold_changes();
    if (is_held)
        gp_profiles_before_fork();
    gp_lock(&gp_registry_lock);
    gp_exact_before_fork();
    gp_threads_hold_starts();
    gp_timers_hold();
}

static void process_begin_child(void)
{
    gp_process_claim();
    atomic_store_explicit(&gp_descriptors_low, 0, memory_order_relaxed); // of threads that are not here
    atomic_store_explicit(&gp_descriptors_closing, 0, memory_order_relaxed);
    gp_spans_after_fork();
    gp_timers_abandon();
    gp_thread_after_fork();
    gp_thread_forget_own();
    gp_collector_after_fork();
}

static void process_finish_outer(bool is_child)
{
    if (forker == NEITHER)
        return;
    if (is_child && gp_process_is_mine()) {
        gp_coro_recycle(gp_coro_take_retired()); // what they did is the parent's to report
        gp_session_in_child();
        gp_sampler_restart_in_child();
        gp_control_in_child();
        gp_otel_context_in_child();
    }
    gp_process_fork_ends();
    forker = NEITHER;
}

static void process_leave_child(void)
{
    gp_thread_leave_rings();
    if (gp_sampler_follows_forks())
        gp_left_child_count(false);
}

static void process_finish_inner(bool is_child)
{
    if (is_child && is_left)
        process_leave_child();
    is_left = false;
    if (forker == NEITHER)
        return;
    if (is_child && is_held)
        process_begin_child();
    else if (is_child)
        process_leave_child();
    gp_timers_let_go();
    gp_threads_let_starts_go();
    gp_exact_after_fork(is_child);
    gp_unlock(&gp_registry_lock);
    if (is_child && is_held)
        gp_profiles_in_child();
    if (is_held)
        process_let_changes_go();
    is_held = false;
    if (forker == INNER)
        process_finish_outer(is_child);
}

static void process_parent_inner(void)
{
    process_finish_inner(false);
}

static void process_child_inner(void)
{
    process_finish_inner(true);
}

static void process_parent_outer(void)
{
    process_finish_outer(false);
}

static void process_child_outer(void)
{
    process_finish_outer(true);
}

extern void *__dso_handle __attribute__((visibility("hidden")));

// Not pthread_once(): a sanitizer's runtime stands before it, and registers handlers before it can take calls. The
// first comes while libraries are initialized, so there is one thread.
static void process_register_inner(void)
{
    static _Atomic bool is_done;
    if (atomic_exchange_explicit(&is_done, true, memory_order_acq_rel))
        return;
    register_atfork_t *next_register = (register_atfork_t *)(uintptr_t)process_real("__register_atfork");
    if (next_register != NULL)
        next_register(process_prepare_inner, process_parent_inner, process_child_inner, &__dso_handle);
    else // musl has the public one only
        pthread_atfork(process_prepare_inner, process_parent_inner, process_child_inner);
}

#ifndef __SANITIZE_THREAD__ // its runtime registers before it can record calls
// The function behind pthread_atfork(). Libraries are initialized before this one, too: the inner step stays the first
// that is registered.
PROF_API int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library)
{
    register_atfork_t *next_register = (register_atfork_t *)(uintptr_t)process_real("__register_atfork");
    process_register_inner();
    return next_register != NULL ? next_register(prepare, parent, child, library) : ENOSYS;
}
#endif

static void process_register_outer(void)
{
    pthread_atfork(process_prepare_outer, process_parent_outer, process_child_outer);
}

PROF_API pid_t fork(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    process_resolve_if_early();
    if (is_ready)
        pthread_once(&once, process_register_outer);
    // A signal handler of the program may come in the middle of another fork of this thread.
    int outer_forker = forker;
    bool outer_held = is_held, outer_left = is_left;
    forker = NEITHER;
    is_held = false;
    pid_t pid = next.fork();
    forker = outer_forker;
    is_held = outer_held;
    is_left = outer_left;
    return pid;
}

// A fork without fork handlers, also from a signal handler.
PROF_API pid_t _Fork(void)
{
    process_resolve_if_early();
    bool is_ours = gp_process_is_mine();
    if (next._Fork == NULL) {
        errno = ENOSYS;
        return -1;
    }
    pid_t pid = next._Fork();
    if (pid == 0 && is_ours)
        process_leave_child();
    return pid;
}

void gp_process_init(void)
{
    if (is_ready)
        return;
    is_ready = true;
    gp_process_claim();
    gp_thread_helper_note();
    gp_sink_add(&gp_profile_sink);
    gp_sink_add(&gp_exact_sink);
    gp_ticks_begin();
    gp_thread_hook_init();
    process_resolve();
    process_register_inner();
    (void)at_quick_exit(gp_process_ending); // it runs no destructors; the first registered runs last
    gp_thread_attach();
}

void gp_process_before_exec(void)
{
    gp_left_child_before_exec();
    if (!gp_process_is_mine()) {
        gp_host_mask_before_childs_exec();
        return;
    }
    gp_control_before_exec();
    gp_session_before_exec();
    gp_sampler_before_exec();
    gp_host_mask_before_exec();
}

void gp_process_after_failed_exec(void)
{
    int saved_errno = errno;
    gp_left_child_after_failed_exec();
    if (gp_process_is_mine()) {
        gp_host_mask_after_failed_exec();
        gp_timers_after_failed_exec();
        gp_control_after_failed_exec();
    }
    errno = saved_errno;
}

static void (*_Atomic at_end)(void);
static void (*_Atomic at_last)(void);

void gp_process_at_end(void (*call)(void), void (*last)(void))
{
    atomic_store_explicit(&at_end, call, memory_order_release);
    atomic_store_explicit(&at_last, last, memory_order_release);
}

void gp_process_ending(void)
{
    if (!gp_process_is_open())
        return;
    void (*call)(void) = atomic_load_explicit(&at_end, memory_order_acquire);
    if (call != NULL)
        call();
    gp_control_end();
    gp_session_ending();
    call = atomic_load_explicit(&at_last, memory_order_acquire);
    if (call != NULL)
        call();
}

void gp_process_give_up(void)
{
    gp_session_sandboxed();
    gp_process_ending();
    gp_sampler_end();
    __atomic_store_n(&prof_exact_active, 0, __ATOMIC_RELAXED);
    atomic_store_explicit(&gp_language_is_left, true, memory_order_relaxed);
    gp_aside_for_good();
    gp_host_mask_before_exec(); // the program's mask, as it believes
    gp_process_leave();
}

// Programs that leave by _exit() run no destructors. Only atomics and a futex are used: it may come from a handler.
PROF_API void _exit(int status)
{
    process_resolve_if_early();
    gp_process_ending();
    next._exit(status);
    __builtin_unreachable();
}

PROF_API void _Exit(int status)
{
    process_resolve_if_early();
    gp_process_ending();
    next._Exit(status);
    __builtin_unreachable();
}
