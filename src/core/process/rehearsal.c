// SPDX-License-Identifier: MIT
// A child makes the calls of greenprof's (base/filter_calls.h), to see what the filter that is there does for them.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/filter_calls.h"
#include "collect/perf_probe.h"
#include "process/sandbox.h"

extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old); // not host_signal.c's

enum { STACK_BYTES = 16384, STEP_NS = 50000, STEPS = 2000 };

typedef struct part {  // of it, on a memory that the child shares
    _Atomic int at;    // the row that it is at
    _Atomic bool goes; // all of it went as it should
    _Alignas(16) unsigned char thread_stack[STACK_BYTES];
} part_t;

static int rehearsal_rehearse_thread(void *unused)
{
    (void)unused;
    syscall(SYS_exit, 0);
    return 0;
}

static void rehearsal_rehearse_signal(int number)
{
    (void)number;
}

// Calls that are no use by themselves: a thread begins and ends, a signal comes and is handled.
static bool rehearsal_rehearse_by_use(part_t *part)
{
    const struct sigaction action = {.sa_handler = rehearsal_rehearse_signal};
    const struct timespec step = {.tv_nsec = STEP_NS};
    const uint64_t none = 0;
    _Atomic pid_t tid = 1;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    if (__sigaction(SIGPROF, &action, NULL) != 0)
        return false;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGPROF);
    if (clone(rehearsal_rehearse_thread, part->thread_stack + STACK_BYTES, flags, NULL, NULL, NULL, &tid) < 0)
        return false;
    for (int i = 0; i < STEPS && atomic_load_explicit(&tid, memory_order_acquire) != 0; i++)
        syscall(SYS_nanosleep, &step, NULL);
    return true;
}

static bool rehearsal_is_to_be_made(const gp_seccomp_call_t *call)
{
    switch (call->number) {
    case SYS_clone:
    case SYS_exit:
    case SYS_rt_sigreturn:
    case SYS_restart_syscall:
    case SYS_rseq: // where the C library has not: the kernel would write there
        return false;
    default:
        return call->need != GP_CALL_LOADED && call->need != GP_CALL_CARRIED && call->need != GP_CALL_ASKED;
    }
}

// As it is without a filter: no file, no memory is where the arguments point to.
static bool rehearsal_is_answered(const gp_seccomp_call_t *call, long result)
{
    bool is_nothing = call->number == SYS_munmap || // of none of its pages, or to no waiter
                      (call->number == SYS_futex && call->arguments[1] == (FUTEX_WAKE | FUTEX_PRIVATE_FLAG));
    return call->need != GP_CALL_VITAL || is_nothing || result > 0 ||
           (result < 0 && (errno == EFAULT || errno == EBADF || errno == ENOMEM));
}

static void rehearsal_rehearse(part_t *part)
{
    const uint64_t all = UINT64_MAX;
    bool goes = true;
    for (int i = 0; i < GP_FILTER_CALL_ROWS; i++) {
        const uint64_t *a = gp_seccomp_calls[i].arguments;
        atomic_store_explicit(&part->at, i, memory_order_relaxed);
        if (rehearsal_is_to_be_made(&gp_seccomp_calls[i]))
            goes = rehearsal_is_answered(&gp_seccomp_calls[i],
                                         syscall(gp_seccomp_calls[i].number, a[0], a[1], a[2], a[3], a[4], a[5])) &&
                   goes;
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
    goes = rehearsal_rehearse_by_use(part) && goes;
    atomic_store_explicit(&part->goes, goes, memory_order_relaxed);
    syscall(SYS_exit_group, 0);
}

static bool rehearsal_has_made(const part_t *part, long number)
{
    bool is_made = false;
    for (int i = 0; i < atomic_load_explicit(&part->at, memory_order_relaxed); i++)
        is_made |= gp_seccomp_calls[i].number == number;
    return is_made;
}

// A child without an exit signal, of which the program hears nothing. The parent makes no call but clone() before the
// child has: it stands still until that has ended.
bool gp_sandbox_kills_already(bool *can_say)
{
    pid_t tid = 0;
    *can_say = true;
    if (!gp_perf_has_filter())
        return false;
    part_t *part = mmap(NULL, sizeof(*part), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (part == MAP_FAILED)
        return true;
    long pid = syscall(SYS_clone, CLONE_VFORK | CLONE_CHILD_SETTID, 0, 0, &tid, &tid); // one of them is for the tid
    if (pid == 0 && tid != 0) // else there is no child: a filter only said so
        rehearsal_rehearse(part);
    bool kills = pid >= 0 && !atomic_load_explicit(&part->goes, memory_order_relaxed);
    *can_say = rehearsal_has_made(part, SYS_write) && rehearsal_has_made(part, SYS_getpid);
    if (pid > 0 && rehearsal_has_made(part, SYS_wait4))
        syscall(SYS_wait4, pid, NULL, __WCLONE, NULL);
    munmap(part, sizeof(*part));
    return kills;
}
