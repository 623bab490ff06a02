// SPDX-License-Identifier: MIT
// The cost of a span to its thread, by the core's own objects, so that a policy can refuse requests. Kinds: 0 = nothing
// records spans; 1 = within a request that the policy refused; 2 = within a request; 3 = the same, with two fields; 4 =
// a request, with a trace of its own; 5 = as 2, while another thread does the same; 6 = a span too short to be
// recorded: it is noted, and its end is looked at. Figure: mean ns of CPU of a begin and an end.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collector.h"
#include "greenprof/prof.h"
#include "greenprof/trace.h"
#include "signal/ticks.h"
#include "trace/span.h"

#include "worker.h"

enum { SPANS_A_ROUND = 200 }; // far fewer than a ring has room for
enum { NOTHING, REFUSED, WITHIN, FIELDS, REQUESTS, BESIDE_ANOTHER, NOTED };

static atomic_bool is_over;

static bool refuse(prof_span_kind_t kind, const char *name)
{
    (void)kind, (void)name;
    return false;
}

__attribute__((noinline)) static void one(prof_span_kind_t kind, const prof_span_options_t *options)
{
    prof_span_end(prof_span_begin(kind, "GET /servers", options));
}

__attribute__((noinline)) static void one_with_fields(void)
{
    prof_span_t *span = prof_span_begin(PROF_SPAN_DATABASE, "SELECT servers", NULL);
    prof_span_set(span, "db.system", "sqlite");
    prof_span_set(span, "db.statement", "SELECT id, name FROM servers WHERE tenant = ?");
    prof_span_end(span);
}

// As a row of SQLite (runtime-hooks/libraries/sqlite.c). Returns whether it took long.
__attribute__((noinline)) static bool one_noted(void)
{
    gp_span_since_t since;
    gp_span_note(&since);
    return gp_ticks_to_ns(gp_ticks() - since.ticks) >= 100000;
}

static void some(unsigned which)
{
    static const prof_trace_id_t trace = {{1}};
    static const prof_span_options_t options = {.size = sizeof(options), .trace = &trace};
    for (int i = 0; i < SPANS_A_ROUND; i++)
        if (which == FIELDS)
            one_with_fields();
        else if (which == NOTED)
            one_noted();
        else
            one(which == REQUESTS ? PROF_SPAN_REQUEST : PROF_SPAN_CACHE, which == REQUESTS ? &options : NULL);
}

static uint64_t rounds(unsigned long count, unsigned which)
{
    uint64_t took = 0;
    for (unsigned long i = 0; i < count; i++) {
        prof_span_t *request = which != REQUESTS ? prof_span_begin(PROF_SPAN_REQUEST, "request", NULL) : NULL;
        uint64_t start = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        some(which);
        took += worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
        prof_span_end(request);
        gp_collector_sync(); // the ring is empty again
    }
    return took;
}

static void *other(void *unused)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof(all));
    sched_setaffinity(0, sizeof(all), &all); // not on the processor of the one that is measured
    while (!atomic_load(&is_over))
        rounds(1, WITHIN);
    return unused;
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    pthread_t thread;
    gp_span_policy = which == REFUSED ? refuse : NULL;
    gp_spans_want(GP_SPANS_HEARD, which != NOTHING);
    atomic_store(&is_over, false);
    bool is_beside = which == BESIDE_ANOTHER && pthread_create(&thread, NULL, other, NULL) == 0;
    figures[0] = (double)rounds(amount, which) / (double)(amount * SPANS_A_ROUND);
    atomic_store(&is_over, true);
    if (is_beside)
        pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    if (prof_start(&options) == NULL) {
        perror("prof_start");
        return 1;
    }
    return worker_serve(argc, argv, block);
}
