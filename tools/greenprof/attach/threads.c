// SPDX-License-Identifier: MIT
#include "threads.h"

#include <sched.h>
#include <signal.h>

#include "base/helpers.h"

int gp_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

// A cpu_set_t has room for the processors of most machines; larger machines count as one processor.
void gp_threads_allow(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    gp_helpers_use(count > 1 ? (unsigned)count - 1 : 0, gp_thread_start);
}
