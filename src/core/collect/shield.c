// SPDX-License-Identifier: MIT
#include "collect/shield.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "signal/host_stack.h"
#include "signal/mask.h"
#include "signal/restart.h"

enum { SIGNALS = 64, HANDLERS_BYTES = 16 << 10, TRIES = 8 };

static _Atomic bool is_up;
static _Atomic int sampler;       // the sampling signal; 0 = none
static _Atomic uint64_t shielded; // bit n - 1: the action of signal n has it because of this

static uint64_t shield_bit(int number)
{
    return number > 0 ? 1ull << (number - 1) : 0;
}

int gp_kernel_action(int number, const gp_kernel_action_t *action, gp_kernel_action_t *old)
{
    return (int)gp_raw_answer(gp_raw_call(SYS_rt_sigaction, number, (long)action, (long)old, sizeof(action->mask), 0));
}

int gp_kernel_action_now(int number, gp_kernel_action_t *now)
{
    now->handler = SIG_ERR; // no action has it
    if (gp_kernel_action(number, NULL, now) != 0)
        return -errno;
    return now->handler == SIG_ERR ? -ENOSYS : 0;
}

bool gp_shield_is_small(size_t bytes)
{
    size_t small = 2 * getauxval(AT_MINSIGSTKSZ) + HANDLERS_BYTES;
    atomic_store_explicit(&gp_host_stack_small, small, memory_order_relaxed);
    return bytes < small;
}

static bool shield_is_for(int number, const gp_kernel_action_t *action)
{
    return (action->flags & SA_ONSTACK) && action->handler != SIG_DFL && action->handler != SIG_IGN &&
           (number < GP_INTERNAL_FIRST || number > GP_INTERNAL_LAST) &&
           number != atomic_load_explicit(&sampler, memory_order_relaxed);
}

static void shield_note(int number, bool is_in)
{
    if (is_in)
        atomic_fetch_or_explicit(&shielded, shield_bit(number), memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&shielded, ~shield_bit(number), memory_order_relaxed);
}

static void (*restorers[SIGNALS + 1])(void); // of actions that were there before greenprof was; NULL = as it is

// Its handler returns by our way, too, which notes where to: held_back.h.
static void shield_change_return(int number, gp_kernel_action_t *action, bool is_in)
{
    bool is_ours = action->restorer == gp_restart_restorer;
    if (is_in && !is_ours && GP_ARCH_RETURNS_BY_US) {
        restorers[number] = action->restorer;
        action->restorer = gp_restart_restorer;
    } else if (!is_in && is_ours && restorers[number] != NULL) {
        action->restorer = restorers[number];
    }
    if (!is_in)
        restorers[number] = NULL;
}

// Put `bit` into the mask of an action, or take it out. Another thread may install an action meanwhile: the next try
// starts from that action.
static void shield_change(int number, uint64_t bit, bool is_in)
{
    gp_kernel_action_t now, next, found;
    if (!is_in)
        shield_note(number, false);
    if (gp_kernel_action_now(number, &now) != 0)
        return;
    for (int i = 0; i < TRIES; i++, now = found) {
        bool has_it = now.mask & bit;
        if (has_it == is_in || (is_in && !shield_is_for(number, &now)))
            return;
        next = now;
        next.mask = is_in ? now.mask | bit : now.mask & ~bit;
        shield_change_return(number, &next, is_in);
        if (is_in)
            shield_note(number, true);
        if (gp_kernel_action(number, &next, &found) != 0 || memcmp(&found, &now, sizeof(now)) == 0)
            return;
    }
}

static void shield_change_all(int by, bool is_in)
{
    uint64_t some = is_in ? UINT64_MAX : atomic_load_explicit(&shielded, memory_order_relaxed);
    for (int number = 1; number <= SIGNALS && by > 0; number++)
        if (some & shield_bit(number))
            shield_change(number, shield_bit(by), is_in);
}

void gp_shield_raise(void)
{
    if (!atomic_exchange_explicit(&is_up, true, memory_order_relaxed))
        shield_change_all(atomic_load_explicit(&sampler, memory_order_relaxed), true);
}

void gp_shield_look(void)
{
    if (atomic_load_explicit(&is_up, memory_order_relaxed))
        shield_change_all(atomic_load_explicit(&sampler, memory_order_relaxed), true);
}

bool gp_shield_is_used(void)
{
    return atomic_load_explicit(&shielded, memory_order_relaxed) != 0;
}

void gp_shield_follow(int number)
{
    int before = atomic_exchange_explicit(&sampler, number, memory_order_relaxed);
    (void)gp_shield_is_small(0); // notes what is
    atomic_store_explicit(&gp_host_stack_met_small, gp_shield_raise, memory_order_relaxed);
    if (before == number)
        return;
    shield_change_all(before, false);
    if (atomic_load_explicit(&is_up, memory_order_relaxed))
        shield_change_all(number, true);
}

void gp_shield_put(int number, struct sigaction *action)
{
    const gp_kernel_action_t asked = {.handler = action->sa_handler, .flags = (unsigned)action->sa_flags};
    int by = atomic_load_explicit(&sampler, memory_order_relaxed);
    bool is_for = by > 0 && atomic_load_explicit(&is_up, memory_order_relaxed) && shield_is_for(number, &asked) &&
                  sigismember(&action->sa_mask, by) == 0;
    if (is_for)
        sigaddset(&action->sa_mask, by);
    if (number >= 1 && number <= SIGNALS)
        shield_note(number, is_for);
}

int gp_shield_in(int number)
{
    bool is_in = number >= 1 && number <= SIGNALS &&
                 (atomic_load_explicit(&shielded, memory_order_relaxed) & shield_bit(number)) != 0;
    return is_in ? atomic_load_explicit(&sampler, memory_order_relaxed) : 0;
}
