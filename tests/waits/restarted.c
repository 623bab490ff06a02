// SPDX-License-Identifier: MIT
// Calls that the kernel makes again after a handler with SA_RESTART: with greenprof they must not end with EINTR
// either.
//   restarted ROUNDS   a thread waits; signals reach it in its sleep, then the awaited event
// Prints `BAD CALL WHAT` for what went wrong; ends with the number of such lines.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../integration/truth.h"

WORK(before)

enum { SIGNALS = 3, PAUSE_US = 300 };

typedef struct place {
    int pipe[2], sockets[2];
    sem_t semaphore;
} place_t;

typedef struct call {
    const char *name;
    long (*wait)(place_t *place);
    void (*end)(place_t *place);
} call_t;

static long by_read(place_t *place)
{
    char byte;
    return read(place->pipe[0], &byte, 1);
}

static void end_read(place_t *place)
{
    if (write(place->pipe[1], "", 1) != 1)
        abort();
}

static long by_recv(place_t *place)
{
    char byte;
    return recv(place->sockets[0], &byte, 1, 0);
}

static void end_recv(place_t *place)
{
    if (send(place->sockets[1], "", 1, 0) != 1)
        abort();
}

static long by_sem_wait(place_t *place)
{
    return sem_wait(&place->semaphore);
}

static void end_sem_wait(place_t *place)
{
    sem_post(&place->semaphore);
}

static const call_t calls[] = {
    {"read", by_read, end_read}, {"recv", by_recv, end_recv}, {"sem_wait", by_sem_wait, end_sem_wait}};

static int rounds;
static _Atomic int waiting, handled;

static void on_signal(int number)
{
    (void)number;
    handled++;
}

typedef struct waiter {
    const call_t *call;
    place_t place;
    int bad;
} waiter_t;

static void *wait_again_and_again(void *argument)
{
    waiter_t *waiter = argument;
    truth_thread_begin();
    for (int i = 1; i <= rounds; i++) {
        work_before(20000 + 7919 * (uint64_t)i % 60000);
        waiting = i;
        if (waiter->call->wait(&waiter->place) < 0) {
            if (waiter->bad++ == 0)
                printf("BAD %s %s\n", waiter->call->name, strerror(errno));
            waiting = 0;
            while (waiter->call->wait(&waiter->place) < 0)
                ;
        }
        waiting = 0;
    }
    truth_thread_end();
    return NULL;
}

static void run(const call_t *call)
{
    waiter_t waiter = {.call = call};
    pthread_t thread;
    if (pipe(waiter.place.pipe) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, waiter.place.sockets) != 0)
        abort();
    sem_init(&waiter.place.semaphore, 0, 0);
    handled = 0;
    pthread_create(&thread, NULL, wait_again_and_again, &waiter);
    for (int i = 1; i <= rounds; i++) {
        while (waiting != i && waiting != 0)
            usleep(PAUSE_US);
        for (int j = 0; j < SIGNALS; j++) {
            usleep(PAUSE_US + 37 * (unsigned)(i % 11));
            pthread_kill(thread, SIGUSR1);
        }
        usleep(PAUSE_US);
        call->end(&waiter.place);
    }
    pthread_join(thread, NULL);
    if (handled < rounds) // on a busy machine
        printf("MERGED %s %d\n", call->name, handled);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    truth_thread_begin();
    if (argc < 2)
        return 2;
    rounds = atoi(argv[1]);
    sigaction(SIGUSR1, &action, NULL);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        run(&calls[i]);
    EXPECT(before);
    truth_print_total();
    return 0;
}
