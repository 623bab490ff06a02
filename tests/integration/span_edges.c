// SPDX-License-Identifier: MIT
// Spans within a request, with work in between, on one processor. Prints the CPU time of each.
//   span_edges COUNT
#include "truth.h"

#include <sched.h>

#include <greenprof/trace.h>

enum { BETWEEN_NS = 150000, WITHIN_NS = 300000, STEPS = 8, MOST = 10000 };

static uint64_t between_ns;

// The first processor allowed; the competitor does the same.
static int stay_on_one_processor(void)
{
    cpu_set_t may, one;
    if (sched_getaffinity(0, sizeof(may), &may) != 0)
        return -1;
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &may)) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            return sched_setaffinity(0, sizeof(one), &one);
        }
    return -1;
}

static void work(uint64_t ns, uint64_t *book)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + ns, book);
}

int main(int argc, char **argv)
{
    static uint64_t within_ns[MOST];
    int count = argc > 1 ? atoi(argv[1]) : 0;
    if (count > MOST || stay_on_one_processor() != 0)
        return 2;
    prof_span_t *request = prof_span_begin(PROF_SPAN_REQUEST, "request", NULL);
    for (int i = 0; i < count; i++) {
        work(BETWEEN_NS * (uint64_t)(i % STEPS), &between_ns);
        prof_span_t *span = prof_span_begin(PROF_SPAN_NATIVE_CALL, "within", NULL);
        work(WITHIN_NS * (uint64_t)(1 + i / STEPS % STEPS), &within_ns[i]);
        prof_span_end(span);
    }
    prof_span_end(request);
    for (int i = 0; i < count; i++)
        printf("WITHIN %.9f\n", truth_seconds(within_ns[i]));
    return 0;
}
