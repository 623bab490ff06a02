// SPDX-License-Identifier: MIT
// Let a system call that our signal ended with EINTR go on, as if nothing had happened.
//
// Threads are signalled only while they run: one that ends a wait came on the way into it, before any time of it had
// passed. So the call can be made again with its arguments, all still in the registers. (A thread woken for nothing, as
// when another one took the event, waits its whole timeout once more where a sample hits it just then.) An
// unknown call, or one that does not wait (model/wait_calls.h), is left alone. On aarch64 all are: restart_aarch64.c.
#pragma once

#include <stdbool.h>
#include <ucontext.h>

// Make the interrupted context repeat its system call, if that has just failed with EINTR, unless another signal is
// pending: its handler may want the EINTR. Make it fail with EINTR if the kernel is going to repeat it for our
// SA_RESTART, but a signal is pending that the program handles without SA_RESTART. Signals: safe. Cost: nothing in
// other contexts, else one system call, and one for each pending signal.
void gp_restart_call(ucontext_t *context);

// Was the interrupted context in a system call? Signals: safe.
bool gp_restart_is_call(const ucontext_t *context);

// A handler of the program's is about to return to `context`. If this handler interrupted a system call, a sample taken
// before the thread leaves the kernel must not restart it; a restart already decided is undone. And it may have been on
// an alternate stack that is not to be touched for a moment: host_stack.h. Called by gp_restart_restorer. Signals:
// safe.
void gp_restart_forget(ucontext_t *context);

// The same context: did that handler end sigsuspend()? Before it is forgotten. Signals: safe.
bool gp_restart_is_suspended(const ucontext_t *context);

// The return address of the program's handlers, in place of glibc's: gp_host_stack_return(), then rt_sigreturn.
// Installed where GP_ARCH_RETURNS_BY_US.
void gp_restart_restorer(void);
