// SPDX-License-Identifier: MIT
// State Threads, which waits by poll(): no descriptor of its own.
#include "runtime.h"

#include <st.h>
#include <stdint.h>

enum { COUNT_MAX = 16, STACK_MIN = 8192 };

static void (*run_body)(int);

size_t runtime_stack_min(void)
{
    return STACK_MIN;
}

static void *enter(void *id)
{
    run_body((int)(intptr_t)id);
    return NULL;
}

bool runtime_run(int count, size_t stack_bytes, void (*body)(int))
{
    st_thread_t threads[COUNT_MAX];
    run_body = body;
    if (st_init() != 0)
        return false;
    for (int id = 0; id < count; id++)
        if ((threads[id] = st_thread_create(enter, (void *)(intptr_t)id, 1, (int)stack_bytes)) == NULL)
            return false;
    for (int id = 0; id < count; id++)
        st_thread_join(threads[id], NULL);
    return true;
}

void runtime_yield(void)
{
    st_usleep(0);
}
