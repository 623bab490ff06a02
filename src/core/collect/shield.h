// SPDX-License-Identifier: MIT
// Handlers of the program's on alternate stacks that have no room for another signal: the kernel would kill.
//
// Model: the frame of a signal takes up to AT_MINSIGSTKSZ bytes, and where a handler runs on an alternate stack that of
// a sample comes below. So from the first small stack on the sampling signal is in the masks of all actions with
// SA_ONSTACK: time in those is `[signal blocked]` (../signal/held_back.h). The program does not see it there.
//
// Signals: safe, from any thread.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_kernel_action { // as rt_sigaction(2) takes it
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
} gp_kernel_action_t;

// The system call itself: glibc leaves two signals out. Either may be NULL. Returns 0, or -1 and errno.
int gp_kernel_action(int number, const gp_kernel_action_t *action, gp_kernel_action_t *old);

// Read an action. Returns 0 or -errno, -ENOSYS where a sandbox says 0 and tells nothing.
int gp_kernel_action_now(int number, gp_kernel_action_t *now);

// Has an alternate stack of `bytes` no room for a sample's signal below a handler of the program's?
bool gp_shield_is_small(size_t bytes);

// Say that there is a small stack, or may be one.
void gp_shield_raise(void);

// Look for actions that the program has installed since by system calls of its own. Cost: a hundred system calls, where
// such a stack is there.
void gp_shield_look(void);

// Has any action got it?
bool gp_shield_is_used(void);

// The sampling signal has changed to `number`; 0 = there is none.
void gp_shield_follow(int number);

// Put it into an action that is about to be installed for `number`, where it belongs.
void gp_shield_put(int number, struct sigaction *action);

// The signal put into the installed action for `number`; 0 = none.
int gp_shield_in(int number);
