// SPDX-License-Identifier: MIT
// The first dump of a service of many modules: first_dump DIRECTORY MODULES WAIT_MS OUTPUT
// Starts a profile of its thread, works for 4 ms in each of DIRECTORY's modules, idles for so long, stops and dumps.
// Output: us of wall time, us of CPU of all threads of the first dump, the same of the second; us of CPU before that.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <greenprof/prof.h>

#include "worker.h"

enum { WORK_NS = 4000000 };

static int work_in(const char *directory, int number)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog and the dog does not mind";
    char path[512];
    uint64_t end = worker_clock_ns(CLOCK_MONOTONIC) + WORK_NS;
    snprintf(path, sizeof(path), "%s/libbench_module_%d.so", directory, number);
    void *module = dlopen(path, RTLD_NOW);
    int (*work)(const char *) = NULL;
    if (module != NULL)
        *(void **)&work = dlsym(module, "module_work");
    if (work == NULL)
        return -1;
    while (worker_clock_ns(CLOCK_MONOTONIC) < end)
        work(text);
    return 0;
}

static int timed_dump(prof_t *profile, const char *path)
{
    uint64_t cpu = worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = worker_clock_ns(CLOCK_MONOTONIC);
    int result = prof_dump_stats(profile, path);
    wall = worker_clock_ns(CLOCK_MONOTONIC) - wall;
    cpu = worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%.1f %.1f ", (double)wall / 1e3, (double)cpu / 1e3);
    return result;
}

int main(int argc, char **argv)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    if (argc < 5)
        return 2;
    options.scope = PROF_SCOPE_THREAD;
    options.frequency_hz = 1000;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        return 1;
    for (int i = 0; i < atoi(argv[2]); i++)
        if (work_in(argv[1], i) < 0)
            return 1;
    usleep((useconds_t)atoi(argv[3]) * 1000);
    prof_stop(profile);
    double before = (double)worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e3;
    if (timed_dump(profile, argv[4]) != 0 || timed_dump(profile, argv[4]) != 0)
        return 1;
    printf("%.1f\n", before);
    prof_free(profile);
    return 0;
}
