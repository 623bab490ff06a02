// SPDX-License-Identifier: MIT
// A host that is linked statically: a profile of itself and of a thread, a child of fork(), a coroutine on a ucontext.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <greenprof/coro.h>
#include <greenprof/prof.h>

enum { STACK_BYTES = 65536, WORK_MS = 100 };

static ucontext_t own, other;

// Until the thread has had this much CPU time.
__attribute__((noinline)) static void spin(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    long end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + WORK_MS;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end);
}

// The header's part of a switch is in the program's own code.
__attribute__((noinline)) static void switch_often(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    long end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + WORK_MS;
    do {
        for (int i = 0; i < 1000; i++)
            prof_coro_switch(NULL);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end);
}

__attribute__((noinline)) static void *in_thread(void *argument)
{
    for (int i = 0; i < 10; i++) // threads of a static program are found ten times a second
        spin();
    return argument;
}

__attribute__((noinline)) static void in_coroutine(void)
{
    spin();
    prof_coro_switch(NULL);
    swapcontext(&other, &own);
}

static void run_coroutine(void)
{
    char *stack = calloc(1, STACK_BYTES);
    prof_coro_t *coro = prof_coro_create(stack, STACK_BYTES, "static coroutine");
    getcontext(&other);
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = STACK_BYTES;
    makecontext(&other, in_coroutine, 0);
    prof_coro_switch(coro);
    swapcontext(&own, &other);
    prof_coro_destroy(coro);
}

static int dump(prof_t *profile, const char *stats, const char *folded)
{
    int error = prof_stop(profile);
    if (error == 0)
        error = prof_dump_stats(profile, stats);
    if (error == 0)
        error = prof_dump(profile, "folded", folded);
    prof_free(profile);
    return error;
}

__attribute__((noinline)) static int in_child(void)
{
    prof_t *profile = prof_start(NULL);
    spin();
    return profile == NULL || dump(profile, "child.prof", "child.folded") != 0;
}

int main(void)
{
    int major = -1, minor = -1, patch = -1, status = 1;
    char text[64];
    pthread_t thread;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    snprintf(text, sizeof(text), "%d.%d.%d", PROF_VERSION_MAJOR, PROF_VERSION_MINOR, PROF_VERSION_PATCH);
    if (strcmp(prof_version(&major, &minor, &patch), text) != 0 || major != PROF_VERSION_MAJOR)
        return 2;
    prof_t *profile = prof_start(&options);
    if (profile == NULL || pthread_create(&thread, NULL, in_thread, NULL) != 0)
        return 3;
    run_coroutine();
    switch_often();
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child());
    if (waitpid(child, &status, 0) != child || status != 0)
        return 4;
    return dump(profile, "static.prof", "static.folded") == 0 ? 0 : 5;
}
