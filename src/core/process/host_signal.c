// SPDX-License-Identifier: MIT
// The host's own use of the sampling signal: sigaction() and signal() are interposed.
//
// A host that installs a handler of its own gets the signal at once: sampling moves to another one (sampling_signal.h),
// or where there is none ends for good, and the capture says so. A host that ignores the signal gets it, too, if
// sampling can move to a usual one: programs executed by it inherit this. A reset of the signal to its default (daemons
// reset all of them) means no harm, but the next sample would kill the process: the program is told that this was done,
// and the handler stays.
//
// Handlers of all signals return by way of gp_restart_restorer (../signal/restart.h), where the processor has one.
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arch.h"
#include "base/peek.h"
#include "base/raw_call.h"
#include "collect/sampler.h"
#include "collect/sampling_signal.h"
#include "collect/shield.h"
#include "coro/process_id.h"
#include "greenprof/prof.h"
#include "process/host_calls.h"
#include "process/host_mask.h"
#include "signal/mask.h"
#include "signal/restart.h"

// glibc's own name, which is not interposed. Needs no look-up: sigaction() may be called from a handler.
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old);

static struct sigaction told; // what the host believes is installed,
static bool is_told;          // once the host was told; else from before

static bool host_signal_handles(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

enum { RESTORER = 0x04000000 }; // SA_RESTORER

// As __sigaction(), but that a handler returns by way of gp_restart_restorer.
static int host_signal_install(int number, const struct sigaction *action, struct sigaction *old)
{
    gp_kernel_action_t mine, before;
    if (!GP_ARCH_RETURNS_BY_US || action == NULL || !host_signal_handles(action) ||
        (number >= GP_INTERNAL_FIRST && number <= GP_INTERNAL_LAST))
        return __sigaction(number, action, old);
    mine = (gp_kernel_action_t){action->sa_handler, (unsigned)action->sa_flags | RESTORER, gp_restart_restorer, 0};
    memcpy(&mine.mask, &action->sa_mask, sizeof(mine.mask));
    if (gp_kernel_action(number, &mine, &before) != 0)
        return -1;
    if (old != NULL) {
        memset(old, 0, sizeof(*old));
        old->sa_handler = before.handler;
        old->sa_flags = (int)before.flags;
        old->sa_restorer = before.restorer;
        memcpy(&old->sa_mask, &before.mask, sizeof(before.mask));
    }
    return 0;
}

// A handler that glibc has just installed.
static void host_signal_let_return_here(int number)
{
    gp_kernel_action_t now;
    if (!GP_ARCH_RETURNS_BY_US || gp_kernel_action_now(number, &now) != 0 || now.handler == SIG_DFL ||
        now.handler == SIG_IGN)
        return;
    now.restorer = gp_restart_restorer;
    gp_kernel_action(number, &now, NULL);
}

// `action` may be where `old` is.
static int host_signal_answer(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction before = told, shielded;
    int result = 0;
    if (!is_told)
        gp_sampling_signal_before(&before);
    if (action != NULL && !gp_process_is_mine()) { // a child of vfork() has actions of its own, and this memory
        result = host_signal_install(number, action, NULL);
    } else if (action != NULL &&
               (host_signal_handles(action) || (action->sa_handler == SIG_IGN && gp_sampling_signal_has_another()))) {
        gp_sampler_yield();
        shielded = *action;
        gp_shield_put(number, &shielded);
        is_told = false; // of the signal that is taken next, nothing
        result = host_signal_install(number, &shielded, NULL);
    } else if (action != NULL) {
        told = *action;
        is_told = true;
    }
    if (old != NULL)
        *old = before;
    return result;
}

int gp_host_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (number == gp_sampling_signal() && gp_sampling_signal_is_ours())
        return host_signal_answer(number, action, old);
    struct sigaction filtered;
    bool believed = gp_host_mask_action_is_believed(number);
    int shielded_by = gp_shield_in(number);
    if (action != NULL) {
        filtered = *action; // `old` may be where it is
        gp_host_mask_filter_action(number, &filtered);
        gp_shield_put(number, &filtered);
    }
    int result = host_signal_install(number, action != NULL ? &filtered : NULL, old);
    if (result == 0 && old != NULL && shielded_by != 0)
        sigdelset(&old->sa_mask, shielded_by);
    if (result == 0 && old != NULL && believed)
        sigaddset(&old->sa_mask, gp_sampling_signal());
    return result;
}

static struct sigaction host_signal_from_kernel(const gp_kernel_action_t *action)
{
    struct sigaction same = {
        .sa_handler = action->handler, .sa_flags = (int)action->flags, .sa_restorer = action->restorer};
    memcpy(&same.sa_mask, &action->mask, sizeof(action->mask));
    return same;
}

static gp_kernel_action_t host_signal_to_kernel(const struct sigaction *action)
{
    gp_kernel_action_t same = {action->sa_handler, (unsigned)action->sa_flags, action->sa_restorer, 0};
    memcpy(&same.mask, &action->sa_mask, sizeof(same.mask));
    return same;
}

long gp_host_kernel_action(const long a[5])
{
    gp_kernel_action_t asked = {0}, before;
    int number = (int)a[0];
    if ((number >= GP_INTERNAL_FIRST && number <= GP_INTERNAL_LAST) || a[3] != sizeof(asked.mask) ||
        (a[1] != 0 && !gp_peek((uintptr_t)a[1], &asked, sizeof(asked))) ||
        (a[2] != 0 && !gp_peek((uintptr_t)a[2], &before, sizeof(before))))
        return gp_raw_answer(gp_raw_call(SYS_rt_sigaction, a[0], a[1], a[2], a[3], a[4]));
    struct sigaction action = host_signal_from_kernel(&asked), old;
    if (gp_host_sigaction(number, a[1] != 0 ? &action : NULL, &old) != 0)
        return -1;
    before = host_signal_to_kernel(&old);
    if (a[2] != 0)
        memcpy((void *)a[2], &before, sizeof(before)); // NOLINT(performance-no-int-to-ptr)
    return 0;
}

PROF_API int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return gp_host_sigaction(number, action, old);
}

// BSD semantics, as glibc's has: system calls are restarted, the signal is blocked in its handler.
PROF_API sighandler_t signal(int number, sighandler_t handler)
{
    extern sighandler_t bsd_signal(int, sighandler_t);
    if (number != gp_sampling_signal() || handler == SIG_ERR || !gp_sampling_signal_is_ours()) {
        sighandler_t before = bsd_signal(number, handler);
        if (before != SIG_ERR)
            host_signal_let_return_here(number);
        return before;
    }
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, number);
    return host_signal_answer(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
