// SPDX-License-Identifier: MIT
// The cost of a frame. Frame pointers, greenprof, libunwind and gperftools climb the same stack in the same run. Prints
// nanoseconds per frame and the ratios that count; asserts nothing.
//
// usage: bench_unwind [ROUNDS]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "stack_shape.h"
#include "unwind/row_cache.h"
#include "unwind/unwind.h"

enum { MAX_FRAMES = 256, REPEAT = 2000 };

static uintptr_t stack_lo, stack_hi;

typedef struct walker {
    const char *name;
    size_t (*walk)(const ucontext_t *context, uintptr_t *frames, size_t max);
    unsigned repeat;
} walker_t;

static size_t walk_fp(const ucontext_t *context, uintptr_t *frames, size_t max)
{
    uintptr_t fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP], n = 0;
    frames[n++] = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    while (n < max && fp >= stack_lo && fp < stack_hi - 16 && fp % 8 == 0) {
        const uintptr_t *record = (const uintptr_t *)fp;
        if (record[1] == 0)
            break;
        frames[n++] = record[1] - 1;
        if (record[0] <= fp)
            break;
        fp = record[0];
    }
    return n;
}

static size_t walk_greenprof(const ucontext_t *context, uintptr_t *frames, size_t max)
{
    uintptr_t gp[33];
    gp_unwind_regs_t regs;
    unsigned flags;
    gp_unwind_regs_from_ucontext(&regs, gp, context);
    return gp_unwind_walk(&regs, stack_lo, stack_hi, frames, max, &flags);
}

// The same, but every walk is of a new stack: other bounds, another memo.
static size_t walk_greenprof_new(const ucontext_t *context, uintptr_t *frames, size_t max)
{
    static uintptr_t turn;
    uintptr_t gp[33];
    gp_unwind_regs_t regs;
    unsigned flags;
    turn ^= 16;
    gp_unwind_regs_from_ucontext(&regs, gp, context);
    return gp_unwind_walk(&regs, stack_lo, stack_hi - turn, frames, max, &flags);
}

static size_t walk_unw_backtrace(const ucontext_t *context, uintptr_t *frames, size_t max)
{
    (void)context;
    return (size_t)unw_backtrace((void **)frames, (int)max);
}

static size_t walk_unw_step(const ucontext_t *context, uintptr_t *frames, size_t max)
{
    unw_cursor_t cursor;
    unw_word_t ip;
    size_t n = 0;
    unw_init_local2(&cursor, (unw_context_t *)(uintptr_t)context, UNW_INIT_SIGNAL_FRAME);
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        frames[n++] = ip;
    } while (n < max && unw_step(&cursor) > 0);
    return n;
}

// gperftools chooses its walker by environment when it is loaded: one process each, see main().
static int (*gperftools_walk)(void **frames, int max, int skip, const void *context);

static size_t walk_gperftools(const ucontext_t *context, uintptr_t *frames, size_t max)
{
    return (size_t)gperftools_walk((void **)frames, (int)max, 0, context);
}

static const walker_t walkers[] = {
    {"frame pointers", walk_fp, REPEAT},
    {"greenprof", walk_greenprof, REPEAT},
    {"greenprof, new", walk_greenprof_new, REPEAT},
    {"unw_backtrace", walk_unw_backtrace, REPEAT},
    {"unw_step", walk_unw_step, REPEAT / 50},
    {"gperftools default", walk_gperftools, REPEAT / 10},
};
enum { WALKERS = sizeof walkers / sizeof *walkers };

static double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

typedef struct result {
    double ns[WALKERS]; // best of all rounds, per walk
    size_t frames[WALKERS];
} result_t;

static void measure(void *arg)
{
    result_t *result = arg;
    uintptr_t frames[MAX_FRAMES];
    ucontext_t context;
    getcontext(&context);
    for (unsigned w = 0; w < WALKERS; w++) {
        if (walkers[w].walk == walk_gperftools && gperftools_walk == NULL)
            continue;
        walkers[w].walk(&context, frames, MAX_FRAMES);
        double start = now_ns();
        for (unsigned i = 0; i < walkers[w].repeat; i++)
            result->frames[w] = walkers[w].walk(&context, frames, MAX_FRAMES);
        double ns = (now_ns() - start) / walkers[w].repeat;
        if (result->ns[w] == 0 || ns < result->ns[w])
            result->ns[w] = ns;
    }
}

static void run_depth(unsigned depth, unsigned rounds)
{
    result_t result;
    memset(&result, 0, sizeof result);
    for (unsigned i = 0; i < rounds; i++)
        shape_call(depth, measure, &result);
    for (unsigned w = 0; w < WALKERS; w++) {
        if (result.frames[w] == 0)
            continue;
        printf("%5u  %-18s %4zu %10.0f %9.2f %8.2fx %8.2fx\n", depth, walkers[w].name, result.frames[w], result.ns[w],
               result.ns[w] / (double)result.frames[w], result.ns[w] / result.ns[0], result.ns[w] / result.ns[3]);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct cold {
    double per_row[1000];
    size_t count;
} cold_t;

// The cost of a row that is not cached: walk once after a flush, minus the warm walk.
static void measure_cold(void *arg)
{
    cold_t *cold = arg;
    uintptr_t frames[MAX_FRAMES];
    ucontext_t context;
    getcontext(&context);
    gp_cache_flush();
    double start = now_ns();
    size_t n = walk_greenprof(&context, frames, MAX_FRAMES);
    double first = now_ns() - start;
    start = now_ns();
    walk_greenprof(&context, frames, MAX_FRAMES);
    double warm = now_ns() - start;
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < i && frames[j] != frames[i])
            j++;
        rows += j == i;
    }
    cold->per_row[cold->count++] = (first - warm) / (double)rows;
}

static void run_cold(unsigned depth)
{
    static cold_t cold;
    cold.count = 0;
    while (cold.count < 1000)
        shape_call(depth, measure_cold, &cold);
    qsort(cold.per_row, cold.count, sizeof *cold.per_row, by_value);
    printf("%5u  cold row: median %.0f ns, 90%% %.0f ns\n", depth, cold.per_row[500], cold.per_row[900]);
}

static void load_gperftools(void)
{
    // Not libtcmalloc, which has the same walkers but would also replace malloc.
    void *handle = dlopen("libprofiler.so.0", RTLD_NOW | RTLD_LOCAL);
    // GetStackTraceWithContext(void **, int, int, const void *)
    void *symbol = handle != NULL ? dlsym(handle, "_Z24GetStackTraceWithContextPPviiPKv") : NULL;
    memcpy(&gperftools_walk, &symbol, sizeof symbol);
}

// The frames of gperftools' other walker, measured in a process of its own.
static void run_again_with(const char *program, const char *method)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("TCMALLOC_STACKTRACE_METHOD", method, 1);
        execl(program, program, "5", "--gperftools-only", (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

static void only_gperftools(const char *method)
{
    static const unsigned depths[] = {5, 20, 50, 100};
    for (unsigned i = 0; i < 4 && gperftools_walk != NULL; i++) {
        result_t result;
        memset(&result, 0, sizeof result);
        for (unsigned round = 0; round < 5; round++)
            shape_call(depths[i], measure, &result);
        unsigned w = WALKERS - 1;
        printf("%5u  gperftools %-12s %4zu %8.0f %9.2f %8.2fx %8.2fx\n", depths[i], method, result.frames[w],
               result.ns[w], result.ns[w] / (double)result.frames[w], result.ns[w] / result.ns[0],
               result.ns[w] / result.ns[3]);
    }
}

static void find_stack(void)
{
    pthread_attr_t attr;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    stack_lo = (uintptr_t)low;
    stack_hi = stack_lo + size;
}

int main(int argc, char **argv)
{
    static const unsigned depths[] = {5, 20, 50, 100};
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;
    find_stack();
    load_gperftools();
    gp_unwind_init();
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
    if (argc > 2) {
        only_gperftools(getenv("TCMALLOC_STACKTRACE_METHOD"));
        return 0;
    }
    printf("depth  walker           frames    ns/walk  ns/frame    of fp   of unw_backtrace\n");
    for (unsigned i = 0; i < 4; i++)
        run_depth(depths[i], rounds);
    for (unsigned i = 0; i < 4; i++)
        run_cold(depths[i]);
    run_again_with("/proc/self/exe", "libunwind");
    run_again_with("/proc/self/exe", "generic_fp");
    return 0;
}
