// SPDX-License-Identifier: MIT
// What spans cost the thread that works for requests, with the consumer of a URL (none: "-").
//
// Usage: bench_consumer_cost URL [SECONDS]
// Prints ns a span (begin and end, rounds of 50 with pauses in between, median of the rounds), and the latency of
// requests of 200 us of work and five spans, 1,000 a second: median, 99th percentile, and what became of the spans.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <greenprof/consumer.h>

enum { ROUNDS = 200, SPANS = 50, WORK_NS = 200000, EVERY_NS = 1000000 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double span_ns(void)
{
    uint64_t took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        prof_span_t *root = prof_span_begin(PROF_SPAN_REQUEST, "round", NULL);
        uint64_t begin = now_ns();
        for (int j = 0; j < SPANS; j++)
            prof_span_end(prof_span_begin(PROF_SPAN_DATABASE, "SELECT 1", NULL));
        took[i] = now_ns() - begin;
        prof_span_end(root);
        usleep(5000);
    }
    qsort(took, ROUNDS, sizeof(took[0]), compare);
    enum { MIDDLE = ROUNDS / 2 };
    return (double)took[MIDDLE] / SPANS;
}

static void work(uint64_t ns)
{
    uint64_t end = now_ns() + ns;
    while (now_ns() < end)
        ;
}

static uint64_t request(void)
{
    uint64_t begin = now_ns();
    prof_span_t *root = prof_span_begin(PROF_SPAN_REST_DISPATCH, "GET /servers", NULL);
    for (int i = 0; i < 4; i++) {
        prof_span_t *span = prof_span_begin(PROF_SPAN_DATABASE, "SELECT 1", NULL);
        work(WORK_NS / 4);
        prof_span_end(span);
    }
    prof_span_end(root);
    return now_ns() - begin;
}

int main(int argc, char **argv)
{
    size_t count = (argc > 2 ? strtoul(argv[2], NULL, 10) : 5) * 1000;
    uint64_t *latencies = argc > 1 && count > 0 ? calloc(count, sizeof(*latencies)) : NULL;
    if (latencies == NULL) {
        fprintf(stderr, "usage: %s URL|- [SECONDS]\n", argv[0]);
        return 2;
    }
    int error = strcmp(argv[1], "-") != 0 ? prof_consumer_open(argv[1]) : 0;
    if (error != 0) {
        fprintf(stderr, "%s: %s: %s\n", argv[0], argv[1], strerror(-error));
        return 1;
    }
    double each = span_ns();
    uint64_t next = now_ns();
    for (size_t i = 0; i < count; i++, next += EVERY_NS) {
        while (now_ns() + 100000 < next)
            usleep(50);
        latencies[i] = request();
    }
    qsort(latencies, count, sizeof(*latencies), compare);
    prof_consumer_flush(3000);
    prof_consumer_status_t status = {.size = sizeof(status)};
    prof_consumer_status(NULL, &status);
    uint64_t lost = status.lost_queue + status.lost_end + status.refused + status.unheard;
    size_t middle = count / 2, nearly_last = count * 99 / 100;
    printf(
        "%-40s %6.1f ns/span  p50 %7.1f us  p99 %7.1f us  sent %llu spooled %llu queued %llu lost %llu failures %llu\n",
        argv[1], each, (double)latencies[middle] / 1000, (double)latencies[nearly_last] / 1000,
        (unsigned long long)status.sent, (unsigned long long)status.spooled, (unsigned long long)status.queued,
        (unsigned long long)lost, (unsigned long long)status.failures);
    free(latencies);
    return 0;
}
