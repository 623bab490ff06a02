// SPDX-License-Identifier: MIT
// Requests on ordinary threads, at the same time: each computes and sleeps as its name says, and books its CPU time.
//
//   REQUEST name trace seconds cpu_seconds asleep_seconds
//     asleep_seconds: from before each call that sleeps to after it
#include <greenprof/trace.h>

#include "../integration/truth.h"

#include <pthread.h>
#include <string.h>

enum { MS = 1000000, US_A_MS = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;

typedef struct request {
    const char *name;
    void (*run)(struct request *);
    uint64_t ran_ns, asleep_ns;
} request_t;

static TRUTH_OUT_OF_LINE void compute(request_t *request, uint64_t ms)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + ms * MS, &request->ran_ns);
    __asm__ volatile("");
}

static TRUTH_OUT_OF_LINE void nap(request_t *request, unsigned ms)
{
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    usleep(ms * US_A_MS);
    request->asleep_ns += truth_clock_ns(CLOCK_MONOTONIC) - start;
}

static void naps(request_t *request)
{
    for (int i = 0; i < 40; i++)
        nap(request, 10);
}

static void works_and_naps(request_t *request)
{
    for (int i = 0; i < 20; i++) {
        compute(request, 5);
        nap(request, 10);
    }
}

static void computes(request_t *request)
{
    compute(request, 150);
}

static void sleeps_long(request_t *request)
{
    compute(request, 20);
    nap(request, 300);
    compute(request, 20);
}

static void waits_for_lock(request_t *request)
{
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(&mutex);
    request->asleep_ns += truth_clock_ns(CLOCK_MONOTONIC) - start;
    pthread_mutex_unlock(&mutex);
    compute(request, 30);
}

static void *serve(void *argument)
{
    request_t *request = argument;
    prof_trace_id_t trace;
    char hex[PROF_TRACE_HEX_SIZE];
    pthread_barrier_wait(&all);
    prof_span_t *span = prof_span_begin(PROF_SPAN_REQUEST, request->name, NULL);
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC), cpu = truth_cpu_ns();
    request->run(request);
    cpu = truth_cpu_ns() - cpu;
    start = truth_clock_ns(CLOCK_MONOTONIC) - start;
    prof_trace_get(&trace);
    prof_span_end(span);
    prof_trace_to_hex(&trace, hex);
    printf("REQUEST %s %s %.6f %.6f %.6f\n", request->name, hex, (double)start / 1e9, (double)cpu / 1e9,
           (double)request->asleep_ns / 1e9);
    return NULL;
}

int main(void)
{
    static request_t requests[] = {{"naps", naps, 0, 0},
                                   {"works_and_naps", works_and_naps, 0, 0},
                                   {"computes", computes, 0, 0},
                                   {"sleeps_long", sleeps_long, 0, 0},
                                   {"waits_for_lock", waits_for_lock, 0, 0}};
    enum { COUNT = sizeof(requests) / sizeof(requests[0]) };
    pthread_t threads[COUNT];
    pthread_barrier_init(&all, NULL, COUNT + 1);
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < COUNT; i++)
        if (pthread_create(&threads[i], NULL, serve, &requests[i]) != 0)
            return 1;
    pthread_barrier_wait(&all);
    usleep(200 * US_A_MS);
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < COUNT; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
