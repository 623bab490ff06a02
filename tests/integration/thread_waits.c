// SPDX-License-Identifier: MIT
// Ordinary threads that wait in five ways, each for as long as the clock says:
//
//   WAIT wait_mutex 1.234567     seconds from before the call to after it
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

enum { SHORT_US = 20000, SHORTS = 40 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int is_open, ends[2];

TRUTH_OUT_OF_LINE static void wait_mutex(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("");
}

TRUTH_OUT_OF_LINE static void wait_condition(void)
{
    pthread_mutex_lock(&gate);
    while (!is_open)
        pthread_cond_wait(&opened, &gate);
    pthread_mutex_unlock(&gate);
    __asm__ volatile("");
}

TRUTH_OUT_OF_LINE static void wait_socket(void)
{
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        perror("read");
}

TRUTH_OUT_OF_LINE static void wait_briefly(void)
{
    for (int i = 0; i < SHORTS; i++)
        usleep(SHORT_US);
    __asm__ volatile("");
}

TRUTH_OUT_OF_LINE static void wait_for_all(pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    __asm__ volatile("");
}

typedef struct wait {
    const char *name;
    void (*call)(void);
} wait_t;

static void *do_wait(void *argument)
{
    const wait_t *wait = argument;
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    wait->call();
    printf("WAIT %s %.6f\n", wait->name, (double)(truth_clock_ns(CLOCK_MONOTONIC) - start) / 1e9);
    return NULL;
}

int main(void)
{
    static wait_t waits[] = {{"wait_mutex", wait_mutex},
                             {"wait_condition", wait_condition},
                             {"wait_socket", wait_socket},
                             {"wait_briefly", wait_briefly}};
    enum { COUNT = sizeof(waits) / sizeof(waits[0]) };
    pthread_t threads[COUNT];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < COUNT; i++)
        if (pthread_create(&threads[i], NULL, do_wait, &waits[i]) != 0)
            return 1;
    sleep(1);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&gate);
    is_open = 1;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
    usleep(500000);
    if (write(ends[1], "x", 1) != 1)
        return 1;
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    wait_for_all(threads, COUNT);
    printf("JOIN %.6f\n", (double)(truth_clock_ns(CLOCK_MONOTONIC) - start) / 1e9);
    return 0;
}
