// SPDX-License-Identifier: MIT
// Threads of the kernel's.
#include "runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

enum { COUNT_MAX = 16 };

static void (*run_body)(int);
static pthread_barrier_t all_made;

size_t runtime_stack_min(void)
{
    long least = sysconf(_SC_THREAD_STACK_MIN);
    return least > 0 ? (size_t)least : 16384;
}

static void *enter(void *id)
{
    pthread_barrier_wait(&all_made);
    run_body((int)(intptr_t)id);
    return NULL;
}

bool runtime_run(int count, size_t stack_bytes, void (*body)(int))
{
    pthread_t threads[COUNT_MAX];
    pthread_attr_t attributes;
    run_body = body;
    pthread_barrier_init(&all_made, NULL, (unsigned)count);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, stack_bytes) != 0)
        return false;
    for (int id = 0; id < count; id++)
        if (pthread_create(&threads[id], &attributes, enter, (void *)(intptr_t)id) != 0)
            return false;
    for (int id = 0; id < count; id++)
        pthread_join(threads[id], NULL);
    return true;
}

void runtime_yield(void)
{
    sched_yield();
}
