// SPDX-License-Identifier: MIT
// Requests beside a burst of dumps: burst DIRECTORY REQUESTS DUMPS THREADS A thread serves requests of 200 us each, one
// a millisecond, with a profile around each. First so many alone, then beside THREADS threads that dump DUMPS profiles
// with symbols not read before, as long as these take. Output, in us: median and 99th percentile alone; the same during
// the burst; how long the burst took; how many requests fell into it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <greenprof/prof.h>

#include "worker.h"

enum { REQUEST_NS = 200000, PERIOD_NS = 1000000, REQUESTS_MAX = 1000000, PROFILES = 16 };

static prof_t *profiles[PROFILES];
static _Atomic int left, dumping;
static const char *directory;
static uint64_t latencies[REQUESTS_MAX];
static volatile unsigned sink;

static void spin(uint64_t ns)
{
    uint64_t end = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        sink = sink + 1;
}

static void *dump_all(void *unused)
{
    char path[512];
    for (int number; (number = atomic_fetch_sub(&left, 1)) > 0;) {
        snprintf(path, sizeof(path), "%s/%d.prof", directory, number);
        if (prof_dump_stats(profiles[number % PROFILES], path) != 0)
            perror(path);
        unlink(path);
    }
    atomic_fetch_sub(&dumping, 1);
    return unused;
}

static uint64_t request(uint64_t due)
{
    struct timespec at = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    prof_t *profile = prof_start(NULL);
    spin(REQUEST_NS);
    prof_stop(profile);
    prof_free(profile);
    return worker_clock_ns(CLOCK_MONOTONIC) - due;
}

// Serve until `most` requests are done, or the burst is over. Returns how many.
static size_t serve(size_t most, int until_over)
{
    size_t count = 0;
    uint64_t due = worker_clock_ns(CLOCK_MONOTONIC);
    while (count < most && !(until_over && atomic_load(&dumping) == 0)) {
        uint64_t now = worker_clock_ns(CLOCK_MONOTONIC);
        due = due + PERIOD_NS > now ? due + PERIOD_NS : now; // a late one does not make all that follow late
        latencies[count++] = request(due);
    }
    return count;
}

static int compare(const void *left_latency, const void *right_latency)
{
    uint64_t a = *(const uint64_t *)left_latency, b = *(const uint64_t *)right_latency;
    return a < b ? -1 : a > b;
}

static void show(size_t count)
{
    qsort(latencies, count, sizeof(*latencies), compare);
    size_t middle = count / 2, late = count * 99 / 100;
    printf("%.1f %.1f ", (double)latencies[middle] / 1e3, (double)latencies[late] / 1e3);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    directory = argv[1];
    int threads = atoi(argv[4]);
    for (int i = 0; i < PROFILES; i++) {
        prof_options_t options = PROF_OPTIONS_INIT;
        options.scope = PROF_SCOPE_THREAD;
        options.frequency_hz = 1000;
        profiles[i] = prof_start(&options);
        spin(20000000);
        prof_stop(profiles[i]);
    }
    size_t alone = serve((size_t)atoi(argv[2]), 0);
    show(alone);
    atomic_store(&left, atoi(argv[3]));
    atomic_store(&dumping, threads);
    uint64_t start = worker_clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, dump_all, NULL);
        pthread_detach(thread);
    }
    size_t beside = serve(REQUESTS_MAX, 1);
    uint64_t took = worker_clock_ns(CLOCK_MONOTONIC) - start;
    show(beside);
    printf("%.1f %zu\n", (double)took / 1e3, beside);
    return 0;
}
