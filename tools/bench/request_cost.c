// SPDX-License-Identifier: MIT
// A profile per request, on a coroutine, while a profile of the process keeps the sampler running.
// Kinds: 0 = start, stop, free; 1 = the same around 2 ms of work, with prof_dump_stats(); 2 = resume and stop of one
// profile. Figures: mean us of wall time of start (or resume), stop, dump, free.
// --others N: so many other request profiles run meanwhile. --threads N: so many threads sleep.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <greenprof/prof.h>

#include "worker.h"

enum { STACK_BYTES = 64 << 10, WORK_NS = 2000000 };

static ucontext_t loop, coroutine;
static char path[64];

static struct {
    unsigned long amount;
    unsigned which;
    double *figures;
} job;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void work(void)
{
    uint64_t end = worker_clock_ns(CLOCK_MONOTONIC) + WORK_NS;
    while (worker_clock_ns(CLOCK_MONOTONIC) < end)
        ;
}

// Add the time since *at to a figure, and move *at on.
static void lap(uint64_t *at, double *figure)
{
    uint64_t now = worker_clock_ns(CLOCK_MONOTONIC);
    *figure += (double)(now - *at) / 1000.0 / (double)job.amount;
    *at = now;
}

static void one_request(void)
{
    uint64_t at = worker_clock_ns(CLOCK_MONOTONIC);
    prof_t *profile = prof_start(NULL);
    lap(&at, &job.figures[0]);
    if (profile == NULL)
        fail("prof_start");
    if (job.which == 1) {
        work();
        at = worker_clock_ns(CLOCK_MONOTONIC);
    }
    prof_stop(profile);
    lap(&at, &job.figures[1]);
    if (job.which == 1 && prof_dump_stats(profile, path) != 0)
        fail("prof_dump_stats");
    lap(&at, &job.figures[2]);
    prof_free(profile);
    lap(&at, &job.figures[3]);
}

static void resume_and_stop(prof_t *profile)
{
    uint64_t at = worker_clock_ns(CLOCK_MONOTONIC);
    prof_resume(profile);
    lap(&at, &job.figures[0]);
    prof_stop(profile);
    lap(&at, &job.figures[1]);
}

static void run(void)
{
    for (;;) {
        prof_t *kept = job.which == 2 ? prof_start(NULL) : NULL;
        prof_stop(kept); // -EINVAL for none
        for (unsigned long i = 0; i < job.amount; i++)
            if (kept != NULL)
                resume_and_stop(kept);
            else
                one_request();
        prof_free(kept);
        swapcontext(&coroutine, &loop);
    }
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    job.amount = amount;
    job.which = which;
    job.figures = figures;
    swapcontext(&loop, &coroutine);
}

static ucontext_t other_loop, other;

static void begin_profile(void)
{
    if (prof_start(NULL) == NULL)
        fail("prof_start");
    swapcontext(&other, &other_loop); // for good
}

// A profile that runs on a coroutine of its own, which waits meanwhile. Apart from its loop, so that no variable lives
// across getcontext(), which may return twice.
__attribute__((noinline)) static void begin_other(void)
{
    getcontext(&other);
    other.uc_stack.ss_size = STACK_BYTES;
    other.uc_stack.ss_sp = malloc(STACK_BYTES);
    if (other.uc_stack.ss_sp == NULL)
        fail("malloc");
    makecontext(&other, begin_profile, 0);
    swapcontext(&other_loop, &other);
}

static void *sleep_on(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void begin_thread(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (pthread_create(&thread, &attr, sleep_on, NULL) != 0)
        fail("pthread_create");
}

int main(int argc, char **argv)
{
    snprintf(path, sizeof(path), "/tmp/bench-request-%d.prof", (int)getpid());
    getcontext(&coroutine);
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_stack.ss_sp = malloc(STACK_BYTES);
    if (coroutine.uc_stack.ss_sp == NULL)
        return 1;
    makecontext(&coroutine, run, 0);
    for (long left = worker_option(argc, argv, "--others", 0); left > 0; left--)
        begin_other();
    for (long left = worker_option(argc, argv, "--threads", 0); left > 0; left--)
        begin_thread();
    int status = worker_serve(argc, argv, block);
    unlink(path);
    return status;
}
