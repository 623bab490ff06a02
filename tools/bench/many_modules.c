// SPDX-License-Identifier: MIT
// A process of many modules: many_modules --modules N, with BENCH_MODULES=DIRECTORY, loads DIRECTORY/0.so to N-1.so.
// Kinds: 0 = work for `amount` us in turn in the last WORKING of them; 1 = the same in all; 2 = announce `amount`
// switches; 3 = start, stop and free of a profile, `amount` times; 4 = the same around 2 ms of work of kind 0, with a
// dump. Figures of 3 and 4: mean us of CPU of all threads of start, of stop, of dump, of free.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <greenprof/coro.h>
#include <greenprof/prof.h>

#include "worker.h"

enum { MODULES_MAX = 4096, WORKING = 8, TURN = 2000, DUMPED_US = 2000, STACK_BYTES = 64 << 10 };

typedef unsigned long work_t(unsigned long amount);

static work_t *works[MODULES_MAX];
static unsigned long count, next;
static char path[64];
static prof_coro_t *coros[2];

static int load(const char *directory, unsigned long number)
{
    char name[512];
    snprintf(name, sizeof(name), "%s/%lu.so", directory, number);
    void *module = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (module != NULL)
        works[number] = (work_t *)(uintptr_t)dlsym(module, "module_work");
    return works[number] != NULL ? 0 : -1;
}

// In turn in the last `modules` of them.
static void work(unsigned long us, unsigned long modules)
{
    uint64_t end = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
    do
        for (int i = 0; i < 8; i++)
            works[count - 1 - next++ % modules](TURN);
    while (worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

// Add the CPU time of all threads since *at to a figure, and move *at on.
static void lap(uint64_t *at, double *figure, unsigned long amount)
{
    uint64_t now = worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    *figure += (double)(now - *at) / 1000.0 / (double)amount;
    *at = now;
}

static void profile(unsigned long amount, int is_dumped, double *figures)
{
    uint64_t at = worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    prof_t *profile = prof_start(NULL);
    lap(&at, &figures[0], amount);
    if (is_dumped) {
        work(DUMPED_US, WORKING);
        at = worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    prof_stop(profile);
    lap(&at, &figures[1], amount);
    if (profile == NULL || (is_dumped && prof_dump_stats(profile, path) != 0)) {
        perror("profile");
        exit(1);
    }
    lap(&at, &figures[2], amount);
    prof_free(profile);
    lap(&at, &figures[3], amount);
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    if (which < 2 && amount > 0)
        work(amount, which == 0 ? WORKING : count);
    for (unsigned long i = 0; i < amount && which >= 2; i++)
        if (which == 2)
            prof_coro_switch(coros[i % 2]);
        else
            profile(amount, which == 4, figures);
    if (which == 2)
        prof_coro_switch(NULL);
}

int main(int argc, char **argv)
{
    const char *directory = getenv("BENCH_MODULES");
    unsigned long wanted = (unsigned long)worker_option(argc, argv, "--modules", WORKING);
    snprintf(path, sizeof(path), "/tmp/bench-modules-%d.prof", (int)getpid());
    if (directory == NULL || wanted < WORKING || wanted > MODULES_MAX)
        return 2;
    for (; count < wanted; count++)
        if (load(directory, count) < 0) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    for (int i = 0; i < 2; i++) {
        void *stack = malloc(STACK_BYTES);
        coros[i] = stack != NULL ? prof_coro_create(stack, STACK_BYTES, NULL) : NULL;
    }
    int status = worker_serve(argc, argv, block);
    unlink(path);
    return status;
}
