// SPDX-License-Identifier: MIT
// Threads that wait for mutexes which others hold, of each kind, and say how long: the [lock] of C. `deadlock`: two
// threads that wait for each other's, for ever; `twin`: the same, but one of them gives up now and then.
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 10, HOLD_MS = 60, KINDS = 6 };

static pthread_mutex_t mutexes[KINDS], left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static const char *const names[KINDS] = {"plain", "again", "adaptive", "checked", "inherit", "robust"};
static pthread_barrier_t together;
static double took[KINDS];

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void call(const char *role, int kind)
{
    char name[16];
    snprintf(name, sizeof(name), "%s-%s", role, names[kind]);
    pthread_setname_np(pthread_self(), name);
}

__attribute__((noinline)) static void hold(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    nap(HOLD_MS);
    pthread_mutex_unlock(mutex);
}

__attribute__((noinline)) static double want(pthread_mutex_t *mutex)
{
    double begin = now();
    pthread_mutex_lock(mutex);
    double time = now() - begin;
    pthread_mutex_unlock(mutex);
    return time;
}

static void *holder(void *argument)
{
    int kind = (int)(size_t)argument;
    call("holder", kind);
    for (int i = 0; i < ROUNDS; i++) {
        nap(10);
        hold(&mutexes[kind]);
    }
    return NULL;
}

static void *victim(void *argument)
{
    int kind = (int)(size_t)argument;
    call("victim", kind);
    for (int i = 0; i < ROUNDS; i++) {
        nap(25);
        took[kind] += want(&mutexes[kind]);
    }
    return NULL;
}

// No lock's waits.
static void *others(void *argument)
{
    sem_t semaphore;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct timespec until;
    (void)argument;
    pthread_setname_np(pthread_self(), "others");
    sem_init(&semaphore, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    sem_timedwait(&semaphore, &until);
    pthread_mutex_lock(&mutex);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void make(void)
{
    static const int types[KINDS] = {PTHREAD_MUTEX_NORMAL,     PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ADAPTIVE_NP,
                                     PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_NORMAL,    PTHREAD_MUTEX_NORMAL};
    for (int kind = 0; kind < KINDS; kind++) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, types[kind]);
        if (strcmp(names[kind], "inherit") == 0)
            pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        if (strcmp(names[kind], "robust") == 0)
            pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&mutexes[kind], &attributes);
    }
}

static int measure(void)
{
    pthread_t threads[2 * KINDS + 1];
    make();
    for (int kind = 0; kind < KINDS; kind++) {
        pthread_create(&threads[2 * kind], NULL, holder, (void *)(size_t)kind);
        pthread_create(&threads[2 * kind + 1], NULL, victim, (void *)(size_t)kind);
    }
    pthread_create(&threads[2 * KINDS], NULL, others, NULL);
    for (int i = 0; i <= 2 * KINDS; i++)
        pthread_join(threads[i], NULL);
    for (int kind = 0; kind < KINDS; kind++)
        printf("LOCK %s %.6f\n", names[kind], took[kind]);
    return 0;
}

__attribute__((noinline)) static void take_right(bool gives_up)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (gives_up)
        pthread_mutex_timedlock(&right, &until);
    else
        pthread_mutex_lock(&right);
}

static void *first(void *gives_up)
{
    pthread_setname_np(pthread_self(), "first");
    pthread_mutex_lock(&left);
    pthread_barrier_wait(&together);
    for (;;)
        take_right(gives_up != NULL);
    return NULL;
}

static void *second(void *unused)
{
    pthread_setname_np(pthread_self(), "second");
    pthread_mutex_lock(&right);
    pthread_barrier_wait(&together);
    pthread_mutex_lock(&left);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    if (argc < 2)
        return measure();
    pthread_barrier_init(&together, NULL, 3);
    pthread_create(&threads[0], NULL, first, strcmp(argv[1], "twin") == 0 ? &together : NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_barrier_wait(&together);
    nap(500);
    printf("waiting\n");
    fflush(stdout);
    nap(argc > 2 ? atoi(argv[2]) * 1000 : 2000);
    _exit(0);
}
