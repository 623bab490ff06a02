// SPDX-License-Identifier: MIT
// A sample at a stack pointer of the test's choice: the signal of the thread's own timer, sent by the thread itself
// from code without unwind rows: the walk goes by the frame pointer and the word at the stack pointer.
#ifndef SAMPLE_AT_H
#define SAMPLE_AT_H

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "collect/sampler.h"
#include "collect/sampling_signal.h"
#include "collect/thread_timers.h"
#include "greenprof/prof.h"
#include "signal/thread.h"
#include "work.h"

#if defined(__x86_64__)
#define SAMPLE_AT 1

enum { SAMPLE_AT_HZ = 100, SAMPLE_AT_REGISTER_SP = 7 };

// system_call(number, a, b, c, d) with `sp` and `fp` in their registers meanwhile.
long sample_at_call(uintptr_t sp, uintptr_t fp, long number, long a, long b, long c, const void *d);
__asm__(".pushsection .text\n"
        "sample_at_call:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    mov %rsp, %rbx\n"
        "    mov 24(%rsp), %r10\n"
        "    mov %rdx, %rax\n"
        "    mov %rdi, %r11\n"
        "    mov %rsi, %rbp\n"
        "    mov %rcx, %rdi\n"
        "    mov %r8, %rsi\n"
        "    mov %r9, %rdx\n"
        "    mov %r11, %rsp\n"
        "    syscall\n"
        "    mov %rbx, %rsp\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".popsection\n");

// The engine whose signals any thread can send itself.
static inline prof_t *sample_at_start(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.frequency_hz = SAMPLE_AT_HZ;
    options.scope = PROF_SCOPE_PROCESS;
    gp_timers_choose_engine("cpu");
    return prof_start(&options);
}

// A test's set-up and tear-down: its state is the profile.
static inline int sample_at_set_up(void **state)
{
    *state = sample_at_start();
    return *state != NULL ? 0 : -1;
}

static inline int sample_at_tear_down(void **state)
{
    prof_stop(*state);
    prof_free(*state);
    return 0;
}

// As the timer of `thread`, which is the caller's, sends it.
static inline siginfo_t sample_at_signal(gp_thread_t *thread)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = gp_sampling_signal();
    info.si_code = SI_TIMER;
    info.si_value.sival_ptr = &thread->timer;
    return info;
}

// Where the caller is.
static inline void sample_at_send_here(gp_thread_t *thread)
{
    siginfo_t info = sample_at_signal(thread);
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), info.si_signo, &info);
}

static inline void sample_at_send(uintptr_t sp, uintptr_t fp)
{
    siginfo_t info = sample_at_signal(gp_thread_self);
    sample_at_call(sp, fp, SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), info.si_signo, &info);
}

// Until a sample was taken there: one is only taken of a thread that has run since the last.
static inline void sample_at(uintptr_t sp, uintptr_t fp)
{
    gp_thread_t *thread = gp_thread_self;
    uint64_t before, after;
    bool there;
    do {
        burn(1000000000u / SAMPLE_AT_HZ);
        before = thread->counters[GP_COUNTER_SAMPLES];
        sample_at_send(sp, fp);
        after = thread->counters[GP_COUNTER_SAMPLES];
        there = thread->registers[SAMPLE_AT_REGISTER_SP] == sp;
    } while (after == before || !there);
}

#endif
#endif
