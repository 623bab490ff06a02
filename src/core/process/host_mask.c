// SPDX-License-Identifier: MIT
// The host's signal masks: calls that would block the sampling signal are interposed, and leave it alone, so threads
// with every signal blocked are sampled as well. The program cannot tell: what it believes is kept and answered, in the
// threads it creates and in the program it executes too.
//
// Threads block the signals of sigwait() or signalfd() first. Such a thread must not be given ours, which is taken out
// of the set; unless the set has few signals: then ours is meant, and sampling moves to another. Masks for the length
// of a wait (sigsuspend, ppoll, pselect, epoll_pwait) are left as they are: nothing runs then. Everything here may be
// called in a signal handler, but for the move.
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "collect/sampler.h"
#include "collect/sampling_signal.h"
#include "coro/process_id.h"
#include "greenprof/prof.h"
#include "process/host_calls.h"
#include "process/host_mask.h"
#include "signal/mask.h"

enum { FEW = 20 };

static _Atomic uint64_t actions_believed; // bit n - 1: the mask of signal n's action is believed to have ours

static uint64_t host_mask_bit(int number)
{
    return 1ull << (number - 1);
}

// The C library's own signals, which no program may block, as bits.
static uint64_t host_mask_internal(void)
{
    return (host_mask_bit(GP_INTERNAL_LAST) << 1) - host_mask_bit(GP_INTERNAL_FIRST);
}

static uint64_t host_mask_bits_of(const sigset_t *set)
{
    uint64_t bits;
    memcpy(&bits, set, sizeof(bits));
    return bits & ~host_mask_internal();
}

static void host_mask_set_bits(sigset_t *set, uint64_t bits)
{
    sigemptyset(set);
    memcpy(set, &bits, sizeof(bits));
}

// Ours, while there are samples to come; else 0.
static uint64_t host_mask_ours(void)
{
    return gp_sampling_signal_is_wanted() && gp_process_is_mine() ? host_mask_bit(gp_sampling_signal()) : 0;
}

static _Atomic pid_t knows_its_own; // a child that has set its mask: the mark is in the child's memory

static int host_mask_change(int how, const sigset_t *set, sigset_t *old)
{
    uint64_t believed = gp_mask_believed, after = believed, bits = 0, before;
    if (set != NULL) {
        uint64_t asked = host_mask_bits_of(set), mine = host_mask_ours();
        bits = how == SIG_UNBLOCK ? asked : asked & ~mine;
        after = how == SIG_BLOCK ? believed | (asked & mine) : how == SIG_UNBLOCK ? believed & ~asked : asked & mine;
    }
    if (set != NULL && how != SIG_BLOCK && !gp_process_is_mine())
        atomic_store_explicit(&knows_its_own, getpid(), memory_order_relaxed);
    if (syscall(SYS_rt_sigprocmask, how, set != NULL ? &bits : NULL, &before, sizeof(before)) != 0)
        return errno;
    if (after != believed && gp_process_is_mine()) // a vfork child's mask is its own, this variable is not
        gp_mask_believed = after;
    if (old != NULL)
        host_mask_set_bits(old, before | believed);
    return 0;
}

PROF_API int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    int saved_errno = errno;
    int error = host_mask_change(how, set, old);
    errno = saved_errno;
    return error;
}

PROF_API int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    int error = host_mask_change(how, set, old);
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

void gp_host_mask_before_exec(void)
{
    sigset_t set;
    host_mask_set_bits(&set, gp_mask_believed);
    gp_mask_change(SIG_BLOCK, &set, NULL);
}

void gp_host_mask_before_childs_exec(void)
{
    if (gp_mask_believed != 0 && atomic_load_explicit(&knows_its_own, memory_order_relaxed) != getpid())
        gp_host_mask_before_exec();
}

void gp_host_mask_after_failed_exec(void)
{
    sigset_t set;
    host_mask_set_bits(&set, gp_mask_believed);
    gp_mask_change(SIG_UNBLOCK, &set, NULL);
}

void gp_host_mask_filter_action(int number, struct sigaction *action)
{
    uint64_t mine = host_mask_ours();
    if (mine == 0 || number < 1 || number > 64)
        return;
    if (host_mask_bits_of(&action->sa_mask) & mine)
        atomic_fetch_or_explicit(&actions_believed, host_mask_bit(number), memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&actions_believed, ~host_mask_bit(number), memory_order_relaxed);
    host_mask_set_bits(&action->sa_mask, host_mask_bits_of(&action->sa_mask) & ~mine);
}

bool gp_host_mask_action_is_believed(int number)
{
    return number >= 1 && number <= 64 &&
           (atomic_load_explicit(&actions_believed, memory_order_relaxed) & host_mask_bit(number)) != 0;
}

// The signals of `set` to wait for.
static const sigset_t *host_mask_waited_for(const sigset_t *set, sigset_t *filtered)
{
    uint64_t bits = set != NULL ? host_mask_bits_of(set) : 0, mine = host_mask_ours();
    if ((bits & mine) == 0)
        return set;
    if (__builtin_popcountll(bits) <= FEW) {
        gp_sampler_yield();
        gp_host_mask_before_exec(); // the host's now: blocked as the host wants
        mine = host_mask_ours();
    }
    host_mask_set_bits(filtered, bits & ~mine);
    return filtered;
}

// glibc's own, which is a cancellation point. Looked up each time: a wait for signals is in no hurry.
#define REAL(type, name) ((type *)(uintptr_t)dlsym(RTLD_NEXT, name))

typedef int timedwait_t(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int waitinfo_t(const sigset_t *, siginfo_t *);
typedef int wait_t(const sigset_t *, int *);

int gp_host_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    sigset_t filtered;
    return REAL(timedwait_t, "sigtimedwait")(host_mask_waited_for(set, &filtered), info, timeout);
}

PROF_API int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    return gp_host_sigtimedwait(set, info, timeout);
}

int gp_host_sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    sigset_t filtered;
    return REAL(waitinfo_t, "sigwaitinfo")(host_mask_waited_for(set, &filtered), info);
}

PROF_API int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return gp_host_sigwaitinfo(set, info);
}

int gp_host_sigwait(const sigset_t *set, int *number)
{
    sigset_t filtered;
    return REAL(wait_t, "sigwait")(host_mask_waited_for(set, &filtered), number);
}

PROF_API int sigwait(const sigset_t *set, int *number)
{
    return gp_host_sigwait(set, number);
}

PROF_API int signalfd(int fd, const sigset_t *set, int flags)
{
    sigset_t filtered;
    set = host_mask_waited_for(set, &filtered);
    return (int)syscall(SYS_signalfd4, fd, set, sizeof(uint64_t), flags);
}
