// SPDX-License-Identifier: MIT
// A library that is bound to the C library past greenprof: it handles SIGPROF, and its thread blocks every signal.
#include <pthread.h>
#include <signal.h>

#include "truth.h"

static volatile sig_atomic_t handled;

static void handle(int number)
{
    handled += number == SIGPROF;
}

TRUTH_OUT_OF_LINE void work_blocked(uint64_t *book)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + 300000000, book);
    __asm__ volatile("");
}

static void *blocked(void *book)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    work_blocked(book);
    return NULL;
}

// Returns how often SIGPROF was handled; it is raised three times.
__attribute__((visibility("default"))) int plugin_run(uint64_t *raising, uint64_t *blocking)
{
    pthread_t thread;
    signal(SIGPROF, handle);
    for (int i = 0; i < 3; i++) {
        uint64_t start = truth_cpu_ns();
        raise(SIGPROF);
        truth_burn_until(start, start + 50000000, raising);
    }
    pthread_create(&thread, NULL, blocked, blocking);
    pthread_join(thread, NULL);
    return handled;
}
