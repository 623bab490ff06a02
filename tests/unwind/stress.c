// SPDX-License-Identifier: MIT
// Everything at once, at 10 kHz: threads that come and go, dlopen and dlclose, exceptions, fork,
// coroutines, while handlers walk every stack. Passes when nothing crashes, hangs or shows a frame
// outside of known code.
//
// usage: stress [SECONDS]
#define _GNU_SOURCE
#include "../context.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "step_work.h"
#include "unwind/unwind.h"

enum { FRAMES = 128, HZ = 10000, STALL_SECONDS = 20 };

#define TLS __attribute__((tls_model("initial-exec")))
static __thread uintptr_t stack_lo TLS, stack_hi TLS;
static __thread uintptr_t coroutine_lo TLS, coroutine_hi TLS;
static __thread timer_t timer TLS;

static _Atomic unsigned long samples, incomplete, frames_seen, odd;
static _Atomic unsigned long turns[8]; // progress of each kind of work
static _Atomic bool stopping;
static const char *plugins[2];

static void on_sample(int signo, siginfo_t *info, void *context)
{
    uintptr_t frames[FRAMES], gp[33];
    unsigned flags;
    int saved = errno;
    gp_unwind_regs_t regs;
    (void)signo, (void)info;
    gp_unwind_regs_from_ucontext(&regs, gp, context);
    bool on_coroutine = regs.sp >= coroutine_lo && regs.sp < coroutine_hi;
    uintptr_t lo = on_coroutine ? coroutine_lo : stack_lo, hi = on_coroutine ? coroutine_hi : stack_hi;
    if (regs.sp < lo || regs.sp >= hi)
        return;
    size_t n = gp_unwind_walk(&regs, lo, hi, frames, FRAMES, &flags);
    atomic_fetch_add_explicit(&samples, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&frames_seen, n, memory_order_relaxed);
    if (flags & GP_UNWIND_INCOMPLETE)
        atomic_fetch_add_explicit(&incomplete, 1, memory_order_relaxed);
    for (size_t i = 1; i < n; i++) {
        struct dl_find_object found;
        if (_dl_find_object((void *)frames[i], &found) != 0)
            atomic_fetch_add_explicit(&odd, 1, memory_order_relaxed);
    }
    errno = saved;
}

static void arm(void)
{
    pthread_attr_t attr;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    stack_lo = (uintptr_t)low;
    stack_hi = stack_lo + size;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec every = {{0, 1000000000 / HZ}, {0, 1000000000 / HZ}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &every, NULL);
}

static void *short_lived(void *arg)
{
    arm();
    for (int i = 0; i < 200; i++) {
        step_cases[0].run();
        step_cases[2].run();
    }
    timer_delete(timer);
    return arg;
}

static void *churn_threads(void *arg)
{
    arm();
    while (!stopping) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_lived, NULL) == 0)
            pthread_join(thread, NULL);
        turns[0]++;
    }
    timer_delete(timer);
    return arg;
}

static volatile int sink;
static void plugin_leaf(void)
{
    for (int i = 0; i < 2000; i++)
        sink++;
}

static void *churn_modules(void *arg)
{
    arm();
    for (unsigned i = 0; !stopping; i++) {
        void *handle = dlopen(plugins[i % 2], RTLD_NOW | RTLD_LOCAL);
        void (*call)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(handle, "plugin_call");
        for (int j = 0; j < 20; j++)
            call(plugin_leaf);
        dlclose(handle);
        if (i % 16 == 0)
            gp_unwind_refresh();
        turns[1]++;
    }
    timer_delete(timer);
    return arg;
}

static void *throw_exceptions(void *arg)
{
    arm();
    while (!stopping) {
        step_throw();
        turns[2]++;
    }
    timer_delete(timer);
    return arg;
}

static void *fork_children(void *arg)
{
    arm();
    while (!stopping) {
        pid_t child = fork();
        if (child == 0) {
            arm(); // timers are not inherited, memos that were in use stay so
            for (int i = 0; i < 50; i++)
                step_cases[0].run();
            _exit(0);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "child ended with %#x\n", (unsigned)status);
            abort();
        }
        turns[3]++;
        usleep(2000);
    }
    timer_delete(timer);
    return arg;
}

static __thread ucontext_t home TLS, away TLS;

static void coroutine_body(void)
{
    for (;;) {
        step_cases[1].run();
        step_cases[4].run();
        swapcontext(&away, &home);
    }
}

static void *switch_coroutines(void *arg)
{
    static char stack[65536];
    arm();
    context_on(&away, stack, sizeof stack, NULL);
    makecontext(&away, coroutine_body, 0);
    coroutine_lo = (uintptr_t)stack;
    coroutine_hi = coroutine_lo + sizeof stack;
    while (!stopping) {
        swapcontext(&home, &away);
        step_cases[3].run();
        turns[4]++;
    }
    timer_delete(timer);
    return arg;
}

static void *(*const work[])(void *) = {churn_threads, churn_modules, throw_exceptions, fork_children,
                                        switch_coroutines};
enum { WORKERS = sizeof work / sizeof *work };

// A worker that makes no progress for long is deadlocked.
static void watch(unsigned seconds)
{
    unsigned long last[WORKERS] = {0};
    unsigned still[WORKERS] = {0};
    for (unsigned second = 0; second < seconds; second++) {
        sleep(1);
        for (unsigned i = 0; i < WORKERS; i++) {
            still[i] = turns[i] == last[i] ? still[i] + 1 : 0;
            last[i] = turns[i];
            if (still[i] >= STALL_SECONDS) {
                fprintf(stderr, "worker %u made no progress for %u s\n", i, still[i]);
                abort();
            }
        }
    }
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
    pthread_t threads[WORKERS];
    struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    plugins[0] = PLUGIN_A;
    plugins[1] = PLUGIN_B;
    gp_unwind_init();
    sigaction(SIGPROF, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work[i], NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    watch(seconds);
    stopping = true;
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("%u s: %lu samples, %.1f frames each, %lu incomplete, %lu frames outside modules\n", seconds, samples,
           (double)frames_seen / (double)(samples + 1), incomplete, odd);
    printf("turns: threads %lu, modules %lu, exceptions %lu, forks %lu, coroutines %lu\n", turns[0], turns[1], turns[2],
           turns[3], turns[4]);
    return samples < 100 || odd > 0 || incomplete > samples / 50;
}
