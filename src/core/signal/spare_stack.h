// SPDX-License-Identifier: MIT
// Running a function on the thread's spare stack.
//
// A switch hook runs on a coroutine's stack, of which there may be hardly any left. A signal that comes meanwhile finds
// `on_spare_stack` set and does not walk. Code on an alternate signal stack must not leave it: the kernel would let the
// next signal start at its top again, over what is there. On our own there is room; on the host's there may be none.
#ifndef GP_SIGNAL_SPARE_STACK_H
#define GP_SIGNAL_SPARE_STACK_H

#include <signal.h>

#include "signal/thread.h"

enum { GP_SPARE_STACK_BYTES = 16 << 10 };

// Call run(argument) on thread->spare_stack. The calling thread's own block. Not nested. Returns false where that
// cannot be. Cost: ~0.2 us, a system call.
static inline bool gp_run_on_spare_stack(gp_thread_t *thread, void (*run)(void *), void *argument)
{
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_ONSTACK)) {
        bool own = now.ss_sp == thread->alternate_stack.ss_sp;
        if (own)
            run(argument);
        return own;
    }
    atomic_store_explicit(&thread->on_spare_stack, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
#if defined(__x86_64__)
    register void *first __asm__("rdi") = argument;
    register void *target __asm__("rax") = (void *)(uintptr_t)run;
    // %rbx is callee-saved: it brings the stack pointer back.
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[top], %%rsp\n\t"
                     "call *%%rax\n\t"
                     "movq %%rbx, %%rsp"
                     : "+r"(first), "+r"(target)
                     : [top] "r"(thread->spare_stack)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                       "cc", "memory");
#else
    run(argument);
#endif
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&thread->on_spare_stack, false, memory_order_relaxed);
    return true;
}

#endif
