// SPDX-License-Identifier: MIT
// The host's alternate signal stack, while a frame on it may come to life again.
//
// Model: coroutines are made with sigaltstack(): a stack is set, a signal raised, its handler keeps its place by
// sigsetjmp() and returns; the stack is taken back, and later jumped into (QEMU's sigaltstack backend, GNU Pth).
// Between that return and the taking back, a sample would begin at the stack's top, over the handler's frame. Without
// greenprof no signal comes then: the program blocks them all.
//
// So the first handler that ends sigsuspend() and returns from a stack which the program has just set leaves ours in
// its place (gp_host_stack_leave()), without as much as a call on it. The program is told that its stack is there. The
// program's stack is there again at its next sigaltstack(), at the end of the next handler, or at a sample some CPU
// time later: a stack set once, for crashes, is away for the shortest of these.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "signal/thread.h"

// An alternate stack of fewer bytes has no room for a sample's signal below a handler of the program's
// (collect/shield.h); 0 = the program has shown none yet.
extern _Atomic size_t gp_host_stack_small;

// The mending of such a stack (gp_shield_raise()): called at each sample that finds one in force.
extern void (*_Atomic gp_host_stack_met_small)(void);

// sigaltstack() itself: the program's is interposed (../process/host_stack_call.c). Returns 0, or -1 and errno.
static inline int gp_host_stack_change(const stack_t *stack, stack_t *old)
{
    return (int)gp_raw_answer(gp_raw_call(SYS_sigaltstack, (long)stack, (long)old, 0, 0, 0));
}

// The program has set a stack, or taken its own back: it is in force.
static inline void gp_host_stack_is_set(gp_thread_t *thread, bool is_fresh)
{
    uintptr_t top = (uintptr_t)thread->alternate_stack.ss_sp + thread->alternate_stack.ss_size;
    thread->host_stack.fresh = is_fresh ? top : 0;
    thread->host_stack.is_away = false;
}

// A handler of the program's is about to return to `context`. The calling thread's own block. Signals: safe.
//   was_awaited: it has ended sigsuspend().
void gp_host_stack_leave(gp_thread_t *thread, ucontext_t *context, bool was_awaited);

// A handler of the program's returns through this: gp_host_stack_leave(), then gp_restart_forget(). The calling thread
// has a block. Called by gp_restart_restorer. Signals: safe.
void gp_host_stack_return(ucontext_t *context);

// A sample has interrupted `context`. Signals: safe. Cost: some loads, but for a moment.
void gp_host_stack_come_back(gp_thread_t *thread, ucontext_t *context, uint64_t cpu_ns);
