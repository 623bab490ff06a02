// SPDX-License-Identifier: MIT
#include "collect/sampling_signal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/signal_name.h"
#include "collect/shield.h"
#include "model/counters.h"
#include "signal/handler.h"
#include "signal/thread.h"

extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old); // not host_signal.c's

static _Atomic int present = SIGPROF;
static _Atomic bool wanted; // a handler is installed for it

int gp_sampling_signal(void)
{
    return atomic_load_explicit(&present, memory_order_acquire);
}

bool gp_sampling_signal_is_wanted(void)
{
    return atomic_load_explicit(&wanted, memory_order_acquire);
}

void gp_sampling_signal_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, gp_sampling_signal());
}

// `unknown` is the answer where a sandbox tells nothing.
static bool sampling_signal_is_ours(int number, bool unknown)
{
    gp_kernel_action_t now;
    int error = gp_kernel_action_now(number, &now);
    return error != 0 ? error == -ENOSYS && unknown : (uintptr_t)now.handler == (uintptr_t)gp_handler;
}

// A handler that was installed stays where the kernel is not asked: another signal would have none.
bool gp_sampling_signal_is_ours(void)
{
    return sampling_signal_is_ours(gp_sampling_signal(), gp_sampling_signal_is_wanted());
}

// All signals, glibc's own two included, which no sigset_t can have: its handlers end a cancelled thread, or change its
// user, in the middle of ours.
static int sampling_signal_block_all(int number)
{
    gp_kernel_action_t action;
    int error = gp_kernel_action_now(number, &action);
    if (error != 0)
        return error;
    action.mask = UINT64_MAX;
    return gp_kernel_action(number, &action, NULL) == 0 ? 0 : -errno;
}

static struct sigaction before; // of the present one: the default, or ignored

void gp_sampling_signal_before(struct sigaction *action)
{
    *action = before;
}

static bool sampling_signal_is_ignored(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
}

// As __sigaction() reads, but that an answer which tells nothing is an error.
static int sampling_signal_read(int number, struct sigaction *action)
{
    gp_kernel_action_t now;
    int error = gp_kernel_action_now(number, &now);
    return error == 0 && __sigaction(number, NULL, action) != 0 ? -errno : error;
}

static int sampling_signal_install(int number, bool may_be_ignored)
{
    struct sigaction old, mine;
    if (sampling_signal_is_ours(number, false))
        return 0;
    int error = sampling_signal_read(number, &old);
    if (error != 0)
        return error;
    bool is_ignored = sampling_signal_is_ignored(&old);
    if (is_ignored ? !may_be_ignored : (old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL)
        return -EBUSY;
    memset(&mine, 0, sizeof(mine));
    mine.sa_sigaction = gp_handler;
    // A handler of the host's that switches stacks or jumps away must not interrupt ours.
    before = old;
    sigfillset(&mine.sa_mask);
    mine.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    return __sigaction(number, &mine, NULL) == 0 ? sampling_signal_block_all(number) : -errno;
}

static int sampling_signal_try(int number, int not_this, bool may_be_ignored)
{
    int error = number != not_this ? sampling_signal_install(number, may_be_ignored) : -EBUSY;
    if (error == 0 && atomic_exchange_explicit(&present, number, memory_order_acq_rel) != number)
        atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_SIGNAL_MOVED], 1, memory_order_relaxed);
    return error;
}

static const int usual[] = {SIGPROF, SIGSTKFLT};

static int sampling_signal_try_usual(int not_this, bool may_be_ignored)
{
    int error = sampling_signal_try(gp_sampling_signal(), not_this, may_be_ignored);
    for (size_t i = 0; error == -EBUSY && i < sizeof(usual) / sizeof(usual[0]); i++)
        error = sampling_signal_try(usual[i], not_this, may_be_ignored);
    return error;
}

// An ignored signal stays ignored in executed programs, too, where a handler is gone: such a signal is the last to be
// taken.
int gp_sampling_signal_take(int not_this)
{
    int error = sampling_signal_try_usual(not_this, false);
    if (error == -EBUSY)
        error = sampling_signal_try_usual(not_this, true);
    for (int number = SIGRTMAX; error == -EBUSY && number >= SIGRTMIN; number--)
        error = sampling_signal_try(number, not_this, true);
    atomic_store_explicit(&wanted, error == 0, memory_order_release);
    gp_shield_follow(error == 0 ? gp_sampling_signal() : 0);
    return error;
}

bool gp_sampling_signal_has_another(void)
{
    struct sigaction now;
    bool found = false;
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        found |= usual[i] != gp_sampling_signal() && sampling_signal_read(usual[i], &now) == 0 &&
                 !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL;
    return found;
}

void gp_sampling_signal_give_back(void)
{
    int number = gp_sampling_signal();
    struct sigaction ignored;
    atomic_store_explicit(&wanted, false, memory_order_release);
    if (!sampling_signal_is_ours(number, false) || atomic_load_explicit(&gp_clock_goes_on, memory_order_relaxed))
        return;
    gp_shield_follow(0);
    memset(&ignored, 0, sizeof(ignored));
    ignored.sa_handler = SIG_IGN; // drops what is pending, for any thread
    __sigaction(number, &ignored, NULL);
    if (before.sa_handler != SIG_IGN)
        __sigaction(number, &before, NULL);
}

int gp_sampling_signal_choose(const char *text)
{
    int number = gp_signal_by_name(text);
    if (number < 0)
        return number;
    atomic_store_explicit(&present, number, memory_order_release);
    return 0;
}

void gp_sampling_signal_take_off(int number)
{
    sigset_t signals;
    struct timespec now = {0};
    sigemptyset(&signals);
    sigaddset(&signals, number);
    while (syscall(SYS_rt_sigtimedwait, &signals, NULL, &now, sizeof(uint64_t)) > 0)
        ;
}
