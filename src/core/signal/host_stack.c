// SPDX-License-Identifier: MIT
#include "signal/host_stack.h"

#include <stddef.h>

#include "signal/restart.h"
#include "signal/sampling.h"
#include "signal/ticks.h"

enum { AWAY_NS = 10000000 }; // CPU time; a stack that is to be taken back is so within microseconds

_Static_assert(offsetof(gp_thread_t, host_stack.fresh) == 0, "as restorer_x86_64.S has it");

_Atomic size_t gp_host_stack_small;
void (*_Atomic gp_host_stack_met_small)(void);

static bool host_stack_holds(const stack_t *stack, uintptr_t address)
{
    return address - (uintptr_t)stack->ss_sp < stack->ss_size;
}

// Put `stack` in force, and into the context that the kernel restores it from. The kernel refuses to change a stack
// that the stack pointer is on: so for one system call the stack pointer is back where it was before the signal.
// Nothing may be delivered meanwhile, nor until the return, which restores the mask.
static void host_stack_force(ucontext_t *context, stack_t stack)
{
    uint64_t all = UINT64_MAX;
    stack.ss_flags &= ~SS_ONSTACK;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
    gp_arch_call_at(gp_arch_sp(context), SYS_sigaltstack, (long)&stack, 0, 0);
    context->uc_stack = stack;
}

static bool host_stack_is_ours(const gp_thread_t *thread, const ucontext_t *context)
{
    return context->uc_stack.ss_sp == thread->alternate_stack.ss_sp;
}

static void host_stack_put_back(gp_thread_t *thread, ucontext_t *context)
{
    if (host_stack_is_ours(thread, context))
        host_stack_force(context, thread->host_stack.stack);
    thread->host_stack.is_away = false;
}

static void host_stack_take_away(gp_thread_t *thread, ucontext_t *context)
{
    thread->host_stack.stack = context->uc_stack;
    thread->host_stack.since_cpu_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    thread->host_stack.is_away = true;
    thread->host_stack.fresh = 0;
    host_stack_force(context, thread->alternate_stack);
}

void gp_host_stack_leave(gp_thread_t *thread, ucontext_t *context, bool was_awaited)
{
    if (thread->host_stack.is_away)
        host_stack_put_back(thread, context);
    else if (thread->host_stack.fresh != 0 && was_awaited && host_stack_holds(&context->uc_stack, (uintptr_t)context) &&
             atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed))
        host_stack_take_away(thread, context);
}

// The program may have set it by a system call of its own.
static void host_stack_measure(const gp_thread_t *thread, const ucontext_t *context)
{
    size_t small = atomic_load_explicit(&gp_host_stack_small, memory_order_relaxed);
    if ((context->uc_stack.ss_flags & SS_DISABLE) || context->uc_stack.ss_size >= small ||
        host_stack_is_ours(thread, context))
        return;
    void (*met)(void) = atomic_load_explicit(&gp_host_stack_met_small, memory_order_relaxed);
    if (met != NULL)
        met();
}

void gp_host_stack_come_back(gp_thread_t *thread, ucontext_t *context, uint64_t cpu_ns)
{
    host_stack_measure(thread, context);
    if (thread->host_stack.is_away && cpu_ns - thread->host_stack.since_cpu_ns >= AWAY_NS)
        host_stack_put_back(thread, context);
}

void gp_host_stack_return(ucontext_t *context)
{
    gp_host_stack_leave(gp_thread_self, context, gp_restart_is_suspended(context));
    gp_restart_forget(context);
    gp_thread_self->returned_to.is_small =
        host_stack_holds(&context->uc_stack, (uintptr_t)context) &&
        context->uc_stack.ss_size < atomic_load_explicit(&gp_host_stack_small, memory_order_relaxed);
    gp_thread_self->returned_to.pc = gp_arch_pc(context);
    gp_thread_self->returned_to.sp = gp_arch_sp(context);
}
