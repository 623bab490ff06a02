// SPDX-License-Identifier: MIT
#include "record/writing.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "collect/collector.h"
#include "coro/threads.h"
#include "signal/ticks.h"

static _Atomic bool running;

static void *writing_write_on(void *argument)
{
    gp_writer_t *writer = argument;
    for (;;) {
        while (!gp_writer_is_busy(writer)) {
            if (!gp_thread_helper_may_stay() && !gp_collector_runs()) { // none that hands anything over
                atomic_store_explicit(&running, false, memory_order_release);
                return NULL;
            }
            gp_futex(&writer->busy, FUTEX_WAIT, 0, NULL);
        }
        gp_writer_write(writer);
        gp_futex(&writer->busy, FUTEX_WAKE, INT_MAX, NULL);
    }
}

void gp_writing_begin(gp_writer_t *writer)
{
    pthread_t thread;
    if (!running && gp_thread_start_own(writing_write_on, writer, &thread) == 0) {
        pthread_detach(thread);
        running = true;
    }
    if (running)
        gp_futex(&writer->busy, FUTEX_WAKE, INT_MAX, NULL);
    else
        gp_writer_write(writer);
}

int gp_writing_wait(gp_writer_t *writer, uint64_t limit_ns)
{
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC);
    while (gp_writer_is_busy(writer)) {
        uint64_t waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
        if (waited >= limit_ns)
            return -ETIMEDOUT;
        uint64_t left = limit_ns - waited;
        struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        gp_futex(&writer->busy, FUTEX_WAIT, 1, &timeout);
    }
    return 0;
}

void gp_writing_after_fork(void)
{
    running = false;
}
