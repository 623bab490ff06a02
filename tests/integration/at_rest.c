// SPDX-License-Identifier: MIT
// A program at rest, and coroutines that sleep right after it. Prints `SLEPT FUNCTION SECONDS` of where they
// slept, and `WAKEUPS COUNT SECONDS`: how often its other threads went to sleep in a rest.
#include "truth.h"

#include "../context.h"
#include <dirent.h>
#include <sys/syscall.h>

enum { NAPS = 40, NAP_MS = 20, SLEEP_ON_MS = 60, REST_MS = 200, LONG_REST_MS = 2000, STACK_BYTES = 65536 };

static ucontext_t loop, napper;
static double napped, slept_on;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static TRUTH_OUT_OF_LINE void nap(void)
{
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    pause_ms(NAP_MS);
    napped += (double)(truth_clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
}

static TRUTH_OUT_OF_LINE void sleep_on(void)
{
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    pause_ms(SLEEP_ON_MS);
    slept_on += (double)(truth_clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
}

static void run(void)
{
    for (;;) {
        nap();
        sleep_on();
        swapcontext(&napper, &loop);
    }
}

static long waits_of(const char *tid)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
    return truth_from_proc(path, "voluntary_ctxt_switches:");
}

static long waits_of_others(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long sum = 0;
    for (const struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;)
        if (task->d_name[0] != '.' && atol(task->d_name) != syscall(SYS_gettid))
            sum += waits_of(task->d_name);
    if (tasks != NULL)
        closedir(tasks);
    return sum;
}

int main(void)
{
    context_on(&napper, malloc(STACK_BYTES), STACK_BYTES, NULL);
    makecontext(&napper, run, 0);
    for (int i = 0; i < NAPS; i++) {
        pause_ms(REST_MS);
        swapcontext(&loop, &napper);
    }
    pause_ms(REST_MS);
    long before = waits_of_others();
    pause_ms(LONG_REST_MS);
    printf("SLEPT nap %.6f\nSLEPT sleep_on %.6f\n", napped, slept_on);
    printf("WAKEUPS %ld %.3f\n", waits_of_others() - before, LONG_REST_MS / 1e3);
    return 0;
}
