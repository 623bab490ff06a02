// SPDX-License-Identifier: MIT
// Events on the stack of a coroutine itself.
#include <alloca.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features.h"

enum { PLUGINS = 4, RAISED = 3, HANDLER_BYTES = 24 << 10, ALTERNATE_BYTES = 64 << 10, BLOCKS = 64 };

uint64_t feature_dlopen(int id, int round)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/plugin_%d.so", getenv("STRESS_PROGRAMS"), (id + round) % PLUGINS);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return features_fail("dlopen");
    uint64_t (*work)(uint64_t);
    *(void **)&work = dlsym(handle, "plugin_work");
    uint64_t value = work((uint64_t)round);
    dlclose(handle);
    return value;
}

static __attribute__((noinline)) int leap(jmp_buf *place, int depth, int value)
{
    if (depth < 0)
        return value;
    if (depth == 0)
        longjmp(*place, value);
    return leap(place, depth - 1, value) + 1;
}

uint64_t feature_setjmp(int id, int round)
{
    jmp_buf place;
    volatile uint64_t sum = 0;
    for (volatile int i = 0; i < 20; i++) {
        int value = setjmp(place);
        if (value == 0)
            leap(&place, 5, id + round + i + 1);
        sum += (uint64_t)value;
    }
    return sum;
}

// Memory from an allocator keeps its content; blocks of many sizes, in an order of their own.
uint64_t feature_allocate(int id, int round)
{
    unsigned char *blocks[BLOCKS];
    uint64_t sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        size_t bytes = (size_t)(id * 7919 + round * 104729 + i * 1299709) % 20000 + 1;
        blocks[i] = realloc(malloc(bytes), bytes * 2);
        if (blocks[i] == NULL)
            return features_fail("malloc");
        memset(blocks[i], i, bytes * 2);
        sum += bytes;
    }
    for (int i = 0; i < BLOCKS; i++) {
        sum += *blocks[i * 37 % BLOCKS];
        free(blocks[i * 37 % BLOCKS]);
    }
    return sum;
}

static _Thread_local volatile int handled;

// As one that logs, or Python's, or a crash reporter's.
static void handle_at_length(int number)
{
    (void)number;
    volatile char *room = alloca(HANDLER_BYTES);
    for (int i = 0; i < HANDLER_BYTES; i += 64)
        room[i] = (char)i;
    handled = handled + 1;
}

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = handle_at_length, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    // Besides, one that comes at any moment.
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec often = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &often, NULL);
}

uint64_t feature_host_signals(int id, int round)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_signals);
    uint64_t handled_each = 0;
    for (int i = 0; i < RAISED; i++) {
        int before = handled;
        raise(SIGUSR1);
        handled_each += handled > before;
    }
    return handled_each == RAISED ? (uint64_t)(id + round) : features_fail("a signal was not handled");
}

static _Thread_local char *alternate; // of this thread
static _Thread_local volatile bool ran_on_it;

static void handle_aside(int number)
{
    (void)number;
    char here = 0;
    ran_on_it = &here >= alternate && &here < alternate + ALTERNATE_BYTES;
}

static bool take_alternate_stack(void)
{
    alternate = malloc(ALTERNATE_BYTES);
    stack_t stack = {.ss_sp = alternate, .ss_size = ALTERNATE_BYTES};
    struct sigaction action = {.sa_handler = handle_aside, .sa_flags = SA_ONSTACK};
    return alternate != NULL && sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0;
}

uint64_t feature_host_sigaltstack(int id, int round)
{
    stack_t seen;
    if (alternate == NULL && !take_alternate_stack())
        return features_fail("sigaltstack");
    ran_on_it = false;
    raise(SIGUSR2);
    if (!ran_on_it || sigaltstack(NULL, &seen) != 0)
        return features_fail("the handler ran on another stack");
    if (seen.ss_sp != alternate || seen.ss_size != ALTERNATE_BYTES)
        return features_fail("the alternate stack is another one");
    return (uint64_t)(id + round);
}

static _Thread_local sigjmp_buf rescue;

static void handle_exhaustion(int number)
{
    siglongjmp(rescue, number);
}

static __attribute__((noinline)) int dive(volatile int *above)
{
    volatile int room[256];
    room[0] = *above + 1;
    return room[0] > 0 ? dive(room) + room[0] : 0;
}

static int exhaust(void)
{
    struct sigaction action = {.sa_handler = handle_exhaustion, .sa_flags = SA_ONSTACK};
    if (alternate == NULL && !take_alternate_stack())
        return 0;
    sigaction(SIGSEGV, &action, NULL);
    volatile int depth = 0;
    int number = sigsetjmp(rescue, 1);
    return number == 0 ? dive(&depth) : number;
}

static void *exhaust_on_thread(void *number)
{
    *(int *)number = exhaust();
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    free(alternate);
    alternate = NULL;
    return NULL;
}

uint64_t feature_stack_exhaustion(int id, int round)
{
    int number = 0;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, FEATURE_STACK_BYTES);
    if (features_on_guarded_stack)
        number = exhaust();
    else if (pthread_create(&thread, &attributes, exhaust_on_thread, &number) == 0)
        pthread_join(thread, NULL);
    return number == SIGSEGV ? (uint64_t)(id + round) : features_fail("the end of the stack was not caught");
}
