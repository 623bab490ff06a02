// SPDX-License-Identifier: MIT
// Running a function on the thread's spare stack.
//
// A switch hook runs on a coroutine's stack, of which there may be hardly any left. Signals are
// blocked meanwhile: a handler of the program's that has no stack of its own would run on what is left of this one.
// Code on an alternate signal stack must not leave it: the kernel would let the
// next signal start at its top again, over what is there. On our own there is room; on the host's there may be none.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signal/host_stack.h"
#include "signal/thread.h"

enum { GP_SPARE_STACK_BYTES = 16 << 10 };

// Call run(argument) on thread->spare_stack. The calling thread's own block. Not nested. Returns false where that
// cannot be. Cost: ~0.5 us, three system calls.
static inline bool gp_run_on_spare_stack(gp_thread_t *thread, void (*run)(void *), void *argument)
{
    stack_t now;
    if (gp_host_stack_change(NULL, &now) != 0 || (now.ss_flags & SS_ONSTACK)) {
        bool own = now.ss_sp == thread->alternate_stack.ss_sp;
        if (own)
            run(argument);
        return own;
    }
    // The system call itself: the program may interpose pthread_sigmask(), and some signals it leaves out.
    uint64_t all = UINT64_MAX, before;
    thread->blocks_all = true; // what comes late by that is charged to the hook
    atomic_signal_fence(memory_order_seq_cst);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
    gp_arch_run_on(thread->spare_stack, run, argument);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
    atomic_signal_fence(memory_order_seq_cst);
    thread->blocks_all = false;
    return true;
}
