// SPDX-License-Identifier: MIT
// A program that unloads a plugin and loads another one to the same place, while it is profiled.
// reloaded DIRECTORY [SELF_DUMP]: spins in its own code, in the first plugin, in the second one, and in the vDSO; with
// SELF_DUMP, built so, it writes a pstats file of itself there. Prints what it did and for how long.
#include "reloaded.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#ifdef SELF_DUMP
#include <greenprof/prof.h>
#endif

static uintptr_t plugin(const char *directory, const char *name, double seconds)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.so", directory, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*run)(double) = handle ? (void (*)(double))dlsym(handle, "plugin_run") : NULL;
    if (run == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 0;
    }
    double before = cpu_seconds();
    run(seconds);
    printf("%s %.6f\n", name, cpu_seconds() - before);
    dlclose(handle);
    return (uintptr_t)run;
}

__attribute__((noinline)) static void own_work(double seconds)
{
    double before = cpu_seconds();
    volatile unsigned sink = 0;
    while (cpu_seconds() < before + seconds)
        for (unsigned i = 0; i < 20000; i++)
            sink = sink + i;
    printf("own_work %.6f\n", cpu_seconds() - before);
}

__attribute__((noinline)) static void clock_work(double seconds)
{
    double before = cpu_seconds();
    struct timespec time;
    while (cpu_seconds() < before + seconds)
        for (unsigned i = 0; i < 500; i++)
            clock_gettime(CLOCK_MONOTONIC, &time);
    printf("clock_work %.6f\n", cpu_seconds() - before);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
#ifdef SELF_DUMP
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_THREAD;
    options.frequency_hz = 1000;
    prof_t *profile = prof_start(&options);
#endif
    own_work(0.15);
    uintptr_t first = plugin(argv[1], "work_plugin_even", 0.3);
    uintptr_t second = plugin(argv[1], "work_plugin_odd", 0.15);
    clock_work(0.15);
    printf("same_place %d\n", first != 0 && first == second);
#ifdef SELF_DUMP
    prof_stop(profile);
    if (prof_dump_stats(profile, argv[2]) != 0)
        return 1;
    prof_free(profile);
#endif
    return first == 0 || second == 0;
}
