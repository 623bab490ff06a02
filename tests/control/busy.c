// SPDX-License-Identifier: MIT
// Threads to attach to: busy [N], each of its kind, N times; or busy N N N N [N]: those that allocate, compute, wait in
// epoll_wait() without expecting EINTR, load and unload a library; and those computing with a lock of the loader's
// held. Says "ready", and for each line of standard input "rounds N failures N".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum { BLOCKS = 64, WAIT_MS = 20 };

static _Atomic bool is_over;
static _Atomic unsigned long rounds, failures;
static _Atomic int begun; // threads that are where they stay

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *allocate(void *unused)
{
    (void)unused;
    begun++;
    for (unsigned round = 0; !is_over; round++, rounds++) {
        unsigned char *blocks[BLOCKS];
        for (unsigned i = 0; i < BLOCKS; i++) {
            size_t size = 16 + (round * 31 + i * 97) % 3000;
            blocks[i] = malloc(size);
            memset(blocks[i], (int)i, size);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            failures += blocks[i][15] != (unsigned char)i;
            free(blocks[i]);
        }
    }
    return NULL;
}

// Sums of doubles in vector registers: what is not restored shows.
static void *compute(void *unused)
{
    (void)unused;
    begun++;
    for (; !is_over; rounds++) {
        double sums[8] = {0};
        for (int i = 0; i < 10000; i++)
            for (int j = 0; j < 8; j++)
                sums[j] += 0.5 * j;
        for (int j = 0; j < 8; j++)
            failures += sums[j] != 5000.0 * j;
    }
    return NULL;
}

static void *wait_for_nothing(void *unused)
{
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    (void)unused;
    begun++;
    for (; !is_over; rounds++)
        failures += epoll_wait(fd, &event, 1, WAIT_MS) != 0;
    return NULL;
}

static void *load(void *unused)
{
    (void)unused;
    begun++;
    for (; !is_over; rounds++) {
        void *library = dlopen("libz.so.1", RTLD_NOW);
        failures += library == NULL || dlsym(library, "zlibVersion") == NULL || dlclose(library) != 0;
        pause_a_little();
    }
    return NULL;
}

static int compute_locked(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    compute(unused);
    return 1;
}

static void *hold(void *unused)
{
    dl_iterate_phdr(compute_locked, unused);
    return NULL;
}

enum { KINDS = 5, USUAL_KINDS = 4 };

static int number_of(int kind, int argc, char **argv)
{
    if (argc > 2)
        return kind + 1 < argc ? (int)strtol(argv[kind + 1], NULL, 10) : 0;
    return kind >= USUAL_KINDS ? 0 : argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
}

int main(int argc, char **argv)
{
    static void *(*const kinds[KINDS])(void *) = {allocate, compute, wait_for_nothing, load, hold};
    enum { MOST = 1000 };
    static pthread_t threads[MOST];
    int count = 0;
    char line[64];
    for (int i = 0; i < KINDS; i++)
        for (int j = 0; j < number_of(i, argc, argv) && count < MOST; j++)
            count += pthread_create(&threads[count], NULL, kinds[i], NULL) == 0;
    while (begun < count)
        pause_a_little();
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        printf("rounds %lu failures %lu\n", rounds, failures);
        fflush(stdout);
    }
    is_over = true;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return failures != 0;
}
