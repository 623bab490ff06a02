// SPDX-License-Identifier: MIT
// A service that is switched from outside: it does what the lines of its standard input say, and answers each with one.
//   burn MS     two coroutines use MS ms of CPU time, burn_a() two thirds of it; "burned A_NS B_NS"
//   close       close all descriptors but the first three, as daemons do
//   fork, reap  a child that waits; "child PID"; then let it end
//   fail        try to become a program that is not there
//   bare        become another program, without an environment
//   again       become this program once more
//   load PATH   load a library; "loaded"
//   lazy PATH   binds its calls when they are made; "loaded"
//   plugin MS   its plugin_burn(); "plugged"
//   leave       end the main thread, and go on in another one; "left"
// The first answer is "ready".
#include "../context.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 65536, SLICE_NS = 1000000, PATH_BYTES = 256 };

static ucontext_t loop, workers[2];
static char stacks[2][STACK_BYTES];
static uint64_t used_ns[2];
static pid_t child;
static int child_waits[2];

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void use(int worker, uint64_t ns)
{
    uint64_t start = cpu_ns(), now = start;
    while (now - start < ns)
        now = cpu_ns();
    used_ns[worker] += now - start;
}

__attribute__((noinline)) void burn_a(void)
{
    use(0, 2 * SLICE_NS);
    __asm__ volatile("");
}

__attribute__((noinline)) void burn_b(void)
{
    use(1, SLICE_NS);
    __asm__ volatile("");
}

static void work_a(void)
{
    for (;;) {
        burn_a();
        swapcontext(&workers[0], &loop);
    }
}

static void work_b(void)
{
    for (;;) {
        burn_b();
        swapcontext(&workers[1], &loop);
    }
}

static void make(int worker, void (*entry)(void))
{
    context_on(&workers[worker], stacks[worker], STACK_BYTES, &loop);
    makecontext(&workers[worker], entry, 0);
}

static void burn(uint64_t ns)
{
    used_ns[0] = used_ns[1] = 0;
    while (used_ns[0] + used_ns[1] < ns)
        for (int i = 0; i < 2; i++)
            swapcontext(&loop, &workers[i]);
    printf("burned %ju %ju\n", (uintmax_t)used_ns[0], (uintmax_t)used_ns[1]);
}

static void start_child(void)
{
    char byte;
    if (pipe(child_waits) != 0)
        exit(1);
    child = fork();
    if (child == 0) {
        close(child_waits[1]);
        while (read(child_waits[0], &byte, 1) > 0)
            ;
        _exit(0);
    }
    close(child_waits[0]);
    printf("child %d\n", (int)child);
}

static void reap(void)
{
    close(child_waits[1]);
    waitpid(child, NULL, 0);
    puts("reaped");
}

static void become(const char *path, char *const *arguments, char *const *environment)
{
    fflush(stdout);
    if (environment != NULL)
        execve(path, arguments, environment);
    else
        execv(path, arguments);
    puts("failed");
}

static void (*plugin_burn)(uint64_t ns);

static void load(const char *path, int mode)
{
    void *library = dlopen(path, mode | RTLD_LOCAL);
    *(void **)&plugin_burn = library != NULL ? dlsym(library, "plugin_burn") : NULL;
    puts(plugin_burn != NULL ? "loaded" : "failed");
}

static void use_plugin(uint64_t ns)
{
    plugin_burn(ns);
    puts("plugged");
}

static void serve(char **arguments);

static void *serve_and_end(void *arguments)
{
    puts("left");
    serve(arguments);
    exit(0);
}

static void leave(char **arguments)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve_and_end, arguments) == 0)
        pthread_exit(NULL);
    puts("failed");
}

static void obey(const char *line, char **arguments)
{
    static char *const sleeper[] = {(char *)"sleep", (char *)"1000", NULL}, *const none[] = {NULL};
    char path[PATH_BYTES];
    int ms;
    if (sscanf(line, "load %255s", path) == 1)
        load(path, RTLD_NOW);
    else if (sscanf(line, "lazy %255s", path) == 1)
        load(path, RTLD_LAZY);
    else if (sscanf(line, "plugin %d", &ms) == 1 && plugin_burn != NULL)
        use_plugin((uint64_t)ms * 1000000);
    else if (sscanf(line, "burn %d", &ms) == 1)
        burn((uint64_t)ms * 1000000);
    else if (strcmp(line, "leave\n") == 0)
        leave(arguments);
    else if (strcmp(line, "close\n") == 0)
        printf("closed %ld\n", syscall(SYS_close_range, 3, UINT32_MAX, 0));
    else if (strcmp(line, "fork\n") == 0)
        start_child();
    else if (strcmp(line, "reap\n") == 0)
        reap();
    else if (strcmp(line, "fail\n") == 0)
        become("/nonexistent", arguments, NULL);
    else if (strcmp(line, "bare\n") == 0)
        become("/bin/sleep", sleeper, none);
    else if (strcmp(line, "again\n") == 0)
        become("/proc/self/exe", arguments, NULL);
    else
        puts("what?");
}

static void serve(char **arguments)
{
    char line[PATH_BYTES + 16];
    while (fgets(line, sizeof(line), stdin) != NULL)
        obey(line, arguments);
}

int main(int argc, char **argv)
{
    (void)argc;
    setvbuf(stdin, NULL, _IONBF, 0); // another image reads what comes behind
    setvbuf(stdout, NULL, _IOLBF, 0);
    make(0, work_a);
    make(1, work_b);
    puts("ready");
    serve(argv);
    return 0;
}
