// SPDX-License-Identifier: MIT
// The cost of spans to the thread that works for requests while a consumer sends them to --url (none: they are not
// recorded). Kinds: 0 = AMOUNT requests of about 200 us and five spans, one every millisecond, each the same
// computation: the median and the 99th percentile of their latencies, us; how many gave a wrong result; spans that the
// backend took so far. 1 = AMOUNT rounds of 50 spans within a request, with pauses in which they are sent: mean ns of
// CPU of a begin and an end, in the median round.
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <greenprof/consumer.h>

enum { MANY = 10000, SPANS = 4, SPANS_A_ROUND = 50, STEPS = 45000, EVERY_NS = 1000000 };

// The same for every request; one that returns anything else has failed.
__attribute__((noinline)) static uint64_t query(uint64_t seed)
{
    for (int i = 0; i < STEPS; i++)
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed;
}

static uint64_t request(uint64_t seed)
{
    prof_span_t *root = prof_span_begin(PROF_SPAN_REST_DISPATCH, "GET /servers", NULL);
    for (int i = 0; i < SPANS; i++) {
        prof_span_t *span = prof_span_begin(PROF_SPAN_DATABASE, "SELECT 1", NULL);
        seed = query(seed);
        prof_span_end(span);
    }
    prof_span_end(root);
    return seed;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Not by sleeping: a processor that slept is slower at first, by more than what is measured.
static void wait_until(uint64_t ns)
{
    while (worker_clock_ns(CLOCK_MONOTONIC) < ns)
        ;
}

static uint64_t values[MANY], cpu[MANY];

static void requests(unsigned long amount, double *figures)
{
    static uint64_t right;
    if (right == 0)
        right = request(1);
    uint64_t next = worker_clock_ns(CLOCK_MONOTONIC);
    for (unsigned long i = 0; i < amount; i++, next += EVERY_NS) {
        wait_until(next);
        uint64_t begin = worker_clock_ns(CLOCK_MONOTONIC), cpu_begin = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        figures[2] += request(1) != right;
        cpu[i] = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
        values[i] = worker_clock_ns(CLOCK_MONOTONIC) - begin;
    }
    qsort(values, amount, sizeof(*values), compare);
    qsort(cpu, amount, sizeof(*cpu), compare);
    size_t middle = amount / 2, late = amount * 99 / 100;
    figures[0] = (double)values[middle] / 1000;
    figures[1] = (double)values[late] / 1000;
    figures[4] = (double)cpu[late] / 1000;
    prof_consumer_status_t status = {.size = sizeof(status)};
    if (prof_consumer_status(NULL, &status) == 0)
        figures[3] = (double)status.sent;
}

static void rounds(unsigned long amount, double *figures)
{
    for (unsigned long i = 0; i < amount; i++) {
        prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "round", NULL);
        uint64_t begin = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int j = 0; j < SPANS_A_ROUND; j++)
            prof_span_end(prof_span_begin(PROF_SPAN_DATABASE, "SELECT 1", NULL));
        values[i] = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
        prof_span_end(root);
        wait_until(worker_clock_ns(CLOCK_MONOTONIC) + EVERY_NS);
    }
    qsort(values, amount, sizeof(*values), compare);
    size_t middle = amount / 2;
    figures[0] = (double)values[middle] / SPANS_A_ROUND;
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    if (amount == 0 || amount > MANY)
        return;
    if (which == 0)
        requests(amount, figures);
    else
        rounds(amount, figures);
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        int error = strcmp(argv[i], "--url") == 0 ? prof_consumer_open(argv[i + 1]) : 0;
        if (error != 0) {
            fprintf(stderr, "%s: %s: %s\n", argv[0], argv[i + 1], strerror(-error));
            return 1;
        }
    }
    return worker_serve(argc, argv, block);
}
