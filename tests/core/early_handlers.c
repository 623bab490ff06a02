// SPDX-License-Identifier: MIT
// A library that is initialized before greenprof is, and registers fork handlers then.
#include "early_handlers.h"

#include <pthread.h>
#include <stddef.h>

void (*early_handler)(void);

static void call(void)
{
    if (early_handler != NULL)
        early_handler();
}

__attribute__((constructor)) static void load(void)
{
    pthread_atfork(call, call, call);
}
