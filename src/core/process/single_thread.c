// SPDX-License-Identifier: MIT
// Calls of the program that the kernel refuses to a process with a second thread: unshare() and setns() of some
// namespaces. Where the program has one thread, greenprof's own end for the moment of the call, and begin again.
#include <errno.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/pacer.h"
#include "collect/sampler.h"
#include "coro/process_id.h"
#include "coro/threads.h"
#include "greenprof/prof.h"
#include "session/session.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

// Source: unshare(2), setns(2).
enum {
    UNSHARED_ALONE = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM,
    ENTERED_ALONE = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWTIME,
};

enum { TRIES = 10000, PAUSE_NS = 100000 };

typedef struct away { // what has ended
    bool collector, pacer;
} away_t;

static void wake_all(void)
{
    gp_collector_kick();
    gp_session_wake();
    gp_pacer.wake();
}

// Has the program one thread, beside some of greenprof's own that all end where they are asked to? One of these that
// begins or ends just now may be counted here and not there: two counts that agree are right, and two that say twice in
// a row that there are others.
static bool is_alone(void)
{
    struct stat tasks;
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int i = 0, seen = 0; i < TRIES && gp_thread_own_staying() == 0; i++) {
        int own = gp_thread_own_count();
        if (stat("/proc/self/task", &tasks) != 0)
            return false;
        int others = (int)tasks.st_nlink - 3 - own; // "." and "..", and the caller
        if (others == 0)
            return own > 0;
        if (others > 0 && others == seen)
            return false;
        seen = others;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    return false;
}

static bool step_aside(away_t *away)
{
    *away = (away_t){gp_collector_runs(), gp_pacer_runs()};
    return gp_thread_end_own(wake_all);
}

// The writing thread begins when there is something to write.
static void come_back(const away_t *away)
{
    gp_thread_let_own_begin();
    gp_sampler_enter();
    if (away->collector)
        gp_collector_start();
    if (away->pacer)
        gp_pacer.start();
    gp_sampler_leave();
}

static int call_alone(long number, long a, long b)
{
    away_t away;
    int saved = errno;
    bool steps_aside = gp_process_is_open() && is_alone();
    if (steps_aside)
        step_aside(&away); // where one does not end in time, the call fails
    errno = saved;
    int result = (int)syscall(number, a, b);
    saved = errno;
    if (steps_aside)
        come_back(&away);
    errno = saved;
    return result;
}

PROF_API int unshare(int flags)
{
    return flags & UNSHARED_ALONE ? call_alone(SYS_unshare, flags, 0) : (int)syscall(SYS_unshare, flags);
}

PROF_API int setns(int fd, int type)
{
    int saved = errno, wanted = type != 0 ? type : ioctl(fd, NS_GET_NSTYPE);
    errno = saved;
    return wanted > 0 && (wanted & ENTERED_ALONE) ? call_alone(SYS_setns, fd, type) : (int)syscall(SYS_setns, fd, type);
}
