// SPDX-License-Identifier: MIT
// A day of a service in minutes, all that passes at once: coroutines that begin and end, each hundredth with a trace of
// its own, threads that come and go, libraries that are loaded and unloaded.
//   soak COROUTINES
// For each 10^8 coroutines there are 10^6 traces, 10^5 threads and 10^4 loads of a library, spread evenly. Prints what
// grow.c prints: "TENTH number RSS kib NS nanoseconds MAPS count"; and at the end "DID coroutines traces threads
// loads".
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include <greenprof/coro.h>
#include <greenprof/trace.h>

enum { STACKS = 64, STACK_BYTES = 16 << 10, TENTHS = 10, PER_TRACE = 100, PER_THREAD = 1000, PER_LOAD = 10000 };

static unsigned long coroutines, traces, threads, loads;
static ucontext_t loop;
static char stacks[STACKS][STACK_BYTES] __attribute__((aligned(64)));

static void fail(const char *what)
{
    fprintf(stderr, "soak: %s: %s\n", what, strerror(errno));
    exit(1);
}

static __attribute__((noinline)) void spin(void)
{
    for (int i = 0; i < 100; i++)
        __asm__ volatile("");
}

static void body(void)
{
    if (coroutines % PER_TRACE == 0) {
        prof_trace_id_t id = {.bytes = {1}};
        memcpy(id.bytes + 8, &coroutines, 8);
        prof_trace_set(&id);
        traces++;
    }
    spin();
}

static void run_coroutine(void)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks[coroutines % STACKS];
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = &loop;
    makecontext(&context, body, 0);
    swapcontext(&loop, &context);
    coroutines++;
}

static void *thread_body(void *unused)
{
    spin();
    return unused;
}

static void run_thread(void)
{
    pthread_t made;
    errno = pthread_create(&made, NULL, thread_body, NULL);
    if (errno != 0)
        fail("pthread_create");
    pthread_join(made, NULL);
    threads++;
}

static void run_plugin(void)
{
    void *handle = dlopen(GROW_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    void (*run)(void) = handle != NULL ? (void (*)(void))dlsym(handle, "run") : NULL;
    if (run == NULL)
        fail(dlerror());
    run();
    dlclose(handle);
    loads++;
}

static long from_proc(const char *path, const char *key)
{
    char line[512];
    long found = 0, lines = 0;
    FILE *file = fopen(path, "r");
    size_t length = strlen(key);
    for (; file != NULL && fgets(line, sizeof(line), file) != NULL; lines++)
        if (length > 0 && strncmp(line, key, length) == 0)
            found = strtol(line + length, NULL, 10);
    if (file != NULL)
        fclose(file);
    return length > 0 ? found : lines;
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    for (int tenth = 1; tenth <= TENTHS; tenth++) {
        double before = cpu_ns();
        unsigned long first = coroutines, end = count / TENTHS * (unsigned long)tenth;
        while (coroutines < end) {
            run_coroutine();
            if (coroutines % PER_THREAD == 0)
                run_thread();
            if (coroutines % PER_LOAD == 0)
                run_plugin();
        }
        printf("TENTH %d RSS %ld NS %.0f MAPS %ld\n", tenth, from_proc("/proc/self/status", "VmRSS:"),
               (cpu_ns() - before) / (double)(end > first ? end - first : 1), from_proc("/proc/self/maps", ""));
        fflush(stdout);
    }
    printf("DID %lu %lu %lu %lu\n", coroutines, traces, threads, loads);
    return 0;
}
