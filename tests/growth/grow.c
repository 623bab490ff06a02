// SPDX-License-Identifier: MIT
// A long life in a short time: COUNT events of one kind, each of which leaves nothing behind in the program itself.
//   grow KIND COUNT [DIRECTORY]
//   coroutines   on one of 64 stacks: created, named, run on a trace of its own, ended
//   threads      created, run, joined
//   plugins      a file of another build each time, loaded at whatever place there is, run, unloaded; in DIRECTORY
//   day          of a service, all of it at once: for each 10^8 coroutines 10^6 traces, 10^5 threads and 10^4 loads
//                of a library, spread evenly; at the end "DID coroutines traces threads loads"
// With GROW_PROFILE=1 a profile of the whole process runs all the time, as in a service that never stops one.
// With GROW_SYNC=N the collector has a round of its own after each N events: how far it is behind is known then,
// however busy the machine is.
// Prints a line for each tenth, with what an event took of the CPU: "TENTH number RSS kib NS nanoseconds MAPS count".
#include "../context.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include <greenprof/coro.h>
#include <greenprof/prof.h>
#include <greenprof/trace.h>

#include "../integration/truth.h"

enum { STACKS = 64, STACK_BYTES = 16 << 10, TENTHS = 10, PER_TRACE = 100, PER_THREAD = 1000, PER_LOAD = 10000 };

static unsigned long number; // of the event
static unsigned long traces, threads, loads;

static void fail(const char *what)
{
    fprintf(stderr, "grow: %s: %s\n", what, strerror(errno));
    exit(1);
}

static __attribute__((noinline)) void spin(void)
{
    for (int i = 0; i < 100; i++)
        __asm__ volatile("");
}

// --- coroutines

static ucontext_t loop;
static char stacks[STACKS][STACK_BYTES] __attribute__((aligned(64)));

static void set_trace(void)
{
    prof_trace_id_t id = {.bytes = {1}};
    memcpy(id.bytes + 8, &number, 8);
    prof_trace_set(&id);
    traces++;
}

static void body(void)
{
    char name[32];
    snprintf(name, sizeof(name), "request %lu", number);
    set_trace();
    prof_coro_name(prof_coro_current(), name);
    spin();
}

static void run_on_stack(void (*run)(void))
{
    ucontext_t context;
    context_on(&context, stacks[number % STACKS], STACK_BYTES, &loop);
    makecontext(&context, run, 0);
    swapcontext(&loop, &context);
}

static void coroutine(void)
{
    run_on_stack(body);
}

// --- threads

static void *thread_body(void *unused)
{
    spin();
    return unused;
}

static void thread(void)
{
    pthread_t made;
    errno = pthread_create(&made, NULL, thread_body, NULL);
    if (errno != 0)
        fail("pthread_create");
    pthread_join(made, NULL);
    threads++;
}

// --- plugins

static const char *directory = ".";
static char *plugin;
static size_t plugin_size, build_id_at;

static void read_plugin(void)
{
    FILE *file = fopen(GROW_PLUGIN, "rb");
    if (file == NULL)
        fail(GROW_PLUGIN);
    plugin = malloc(1 << 20);
    plugin_size = fread(plugin, 1, 1 << 20, file);
    fclose(file);
    const char *note = memmem(plugin, plugin_size, "\4\0\0\0\24\0\0\0\3\0\0\0GNU", 16);
    if (note == NULL)
        fail("no build-id in " GROW_PLUGIN);
    build_id_at = (size_t)(note - plugin) + 16;
}

static void load(const char *path, bool is_removed)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (is_removed)
        unlink(path);
    void (*run)(void) = handle != NULL ? (void (*)(void))dlsym(handle, "run") : NULL;
    if (run == NULL)
        fail(dlerror());
    run();
    dlclose(handle);
    loads++;
}

static void plug(void)
{
    char path[4096];
    if (plugin == NULL)
        read_plugin();
    memcpy(plugin + build_id_at, &number, sizeof(number));
    snprintf(path, sizeof(path), "%s/plugin%lu.so", directory, number);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    if (fd < 0 || write(fd, plugin, plugin_size) != (ssize_t)plugin_size)
        fail(path);
    close(fd);
    load(path, true);
}

// --- all at once

static void day_body(void)
{
    if (number % PER_TRACE == 0)
        set_trace();
    spin();
}

static void day(void)
{
    run_on_stack(day_body);
    if (number % PER_THREAD == PER_THREAD - 1)
        thread();
    if (number % PER_LOAD == PER_LOAD - 1)
        load(GROW_PLUGIN, false);
}

// --- all

static const struct {
    const char *name;
    void (*event)(void);
} kinds[] = {{"coroutines", coroutine}, {"threads", thread}, {"plugins", plug}, {"day", day}};

// Returns once all that was sampled and retired before has been taken in.
static void sync_collector(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_THREAD; // a request does not wait for a round as it stops
    prof_t *profile = prof_start(&options);
    if (profile == NULL || prof_stop(profile) != 0)
        fail("prof_start");
    prof_free(profile);
}

static void run(void (*event)(void), unsigned long count)
{
    const char *sync = getenv("GROW_SYNC");
    unsigned long every = sync != NULL ? strtoul(sync, NULL, 10) : 0;
    for (int tenth = 1; tenth <= TENTHS; tenth++) {
        uint64_t before = truth_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        unsigned long first = number, end = count / TENTHS * (unsigned long)tenth;
        for (; number < end; number++) {
            event();
            if (every != 0 && number % every == 0)
                sync_collector();
        }
        double took = (double)(truth_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
        printf("TENTH %d RSS %ld NS %.0f MAPS %ld\n", tenth, truth_from_proc("/proc/self/status", "VmRSS:"),
               took / (double)(end > first ? end - first : 1), truth_from_proc("/proc/self/maps", ""));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    if (argc < 3)
        return 2;
    if (argc > 3)
        directory = argv[3];
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = getenv("GROW_PROFILE") != NULL ? prof_start(&options) : NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, argv[1]) == 0)
            run(kinds[i].event, strtoul(argv[2], NULL, 10));
    if (profile != NULL)
        prof_stop(profile);
    prof_free(profile);
    printf("DID %lu %lu %lu %lu\n", number, traces, threads, loads);
    return 0;
}
