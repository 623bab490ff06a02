// SPDX-License-Identifier: MIT
// A service that runs for a while: one request all the time, short ones within it, and a child if asked for.
//   parts SECONDS [fork | linger]      linger: it goes on for 5 s without a request
#include <greenprof/trace.h>
#include <sys/wait.h>

#include "truth.h"

enum { SLICE_NS = 5000000 };

WORK(short_request)

static void serve(const char *name, double seconds)
{
    unsigned long count = 0;
    truth_thread_begin();
    uint64_t end = truth_cpu_ns() + (uint64_t)(seconds * 1e9), start = truth_clock_ns(CLOCK_MONOTONIC);
    prof_span_t *all = prof_span_begin(PROF_SPAN_REQUEST, name, NULL);
    while (truth_cpu_ns() < end) {
        prof_span_t *one = prof_span_begin(PROF_SPAN_NATIVE_CALL, "short", NULL);
        work_short_request(SLICE_NS);
        prof_span_end(one);
        count++;
    }
    prof_span_end(all);
    printf("SPANS %s %lu %.6f\n", name, count, truth_seconds(truth_clock_ns(CLOCK_MONOTONIC) - start));
    EXPECT(short_request);
    truth_print_total();
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    int lingers = argc > 2 && strcmp(argv[2], "linger") == 0;
    if (argc > 2 && !lingers) {
        pid_t child = fork();
        if (child == 0) {
            serve("child", seconds);
            return 0;
        }
        waitpid(child, NULL, 0);
    }
    serve("parent", seconds);
    fflush(stdout);
    if (lingers)
        sleep(5);
    return 0;
}
