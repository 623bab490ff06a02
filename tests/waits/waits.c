// SPDX-License-Identifier: MIT
// Every system call never restarted by signal(7), and other waits: greenprof must end none of them early.
//   waits length ROUNDS   each call on a thread of its own, again and again, beside computing threads: none may
//                         end with EINTR, none before its time
//   waits kicked ROUNDS   a signal of the program's own, sent while the thread sleeps in the call, does end it
// Prints `BAD CALL WHAT` for each failure; ends with the number of such lines.
#include "waits.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../integration/truth.h"

WORK(before)
WORK(sibling)

enum { SIBLINGS = 2, STACK_BYTES = 128 << 10 };

typedef struct waiter {
    const waits_call_t *call;
    pthread_t thread, helper;
    _Atomic int tid, waiting, over;
    int interrupted, unhandled, early, failed, error;
} waiter_t;

static int rounds;
static _Atomic int over;
static __thread _Atomic int handled;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void on_kick(int number)
{
    (void)number;
    handled++;
}

static void *sibling(void *unused)
{
    truth_thread_begin();
    while (!over)
        work_sibling(1000000);
    truth_thread_end();
    return unused;
}

static void note(waiter_t *waiter, int result, uint64_t took_ns)
{
    if (result == EINTR)
        waiter->interrupted++;
    else if (result != 0)
        waiter->failed++, waiter->error = result;
    else if (took_ns < waiter->call->length_ns)
        waiter->early++;
}

// The lengths of the work before vary, so that samples are taken on the way into the call.
static void *wait_again_and_again(void *argument)
{
    waiter_t *waiter = argument;
    waits_place_t place;
    truth_thread_begin();
    waits_open(&place);
    for (int i = 0; i < rounds; i++) {
        work_before(20000 + 7919 * (uint64_t)i % 60000);
        uint64_t start = now_ns();
        int result = waiter->call->wait(&place, waiter->call->length_ns);
        note(waiter, result, now_ns() - start);
    }
    waits_close(&place);
    truth_thread_end();
    waiter->over = 1;
    return NULL;
}

static void *wait_to_be_kicked(void *argument)
{
    waiter_t *waiter = argument;
    waits_place_t place;
    truth_thread_begin();
    waits_open(&place);
    place.is_silent = 1;
    waiter->tid = (int)syscall(SYS_gettid);
    for (int i = 0; i < rounds; i++) {
        work_before(20000 + 7919 * (uint64_t)i % 60000);
        int before = handled;
        waiter->waiting = i + 1;
        int result = waiter->call->wait(&place, 20ull * 1000000000);
        waiter->waiting = 0;
        if (result != EINTR)
            waiter->failed++, waiter->error = result;
        if (handled != before + 1)
            waiter->unhandled++;
    }
    waits_close(&place);
    truth_thread_end();
    waiter->over = 1;
    return NULL;
}

static char state_of(int tid)
{
    char path[64], text[256], *end;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "re");
    size_t len = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[len] = '\0';
    end = strrchr(text, ')');
    return end != NULL ? end[2] : '?';
}

// A signal for each wait of the thread, once it sleeps.
static void *kick(void *argument)
{
    waiter_t *waiter = argument;
    truth_thread_begin();
    for (int done = 0; !waiter->over;) {
        int round = waiter->waiting;
        if (round > done && state_of(waiter->tid) == 'S' && waiter->waiting == round) {
            pthread_kill(waiter->thread, SIGUSR1);
            done = round;
        } else {
            usleep(200);
        }
    }
    truth_thread_end();
    return NULL;
}

static void report(const waiter_t *waiter)
{
    if (waiter->interrupted)
        printf("BAD %s interrupted %d\n", waiter->call->name, waiter->interrupted);
    if (waiter->unhandled)
        printf("BAD %s unhandled %d\n", waiter->call->name, waiter->unhandled);
    if (waiter->failed)
        printf("BAD %s failed %d %s\n", waiter->call->name, waiter->failed, strerror(waiter->error));
    // A few in some thousand may be the kernel's: a socket's timeout is counted in ticks, and a virtual machine's may
    // come late.
    if (waiter->early)
        printf("EARLY %s %d\n", waiter->call->name, waiter->early);
}

static void all(const char *only, bool kicked)
{
    static waiter_t waiters[WAITS_MAX];
    pthread_t siblings[SIBLINGS];
    pthread_attr_t attributes;
    int count = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 0; i < SIBLINGS; i++)
        pthread_create(&siblings[i], &attributes, sibling, NULL);
    for (const waits_call_t *call = waits_calls; call->name != NULL; call++) {
        if ((only != NULL && strcmp(only, call->name) != 0) || (kicked && !call->can_be_kicked))
            continue;
        waiter_t *waiter = &waiters[count++];
        waiter->call = call;
        pthread_create(&waiter->thread, &attributes, kicked ? wait_to_be_kicked : wait_again_and_again, waiter);
        if (kicked)
            pthread_create(&waiter->helper, &attributes, kick, waiter);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(waiters[i].thread, NULL);
        if (kicked)
            pthread_join(waiters[i].helper, NULL);
        report(&waiters[i]);
    }
    over = 1;
    for (int i = 0; i < SIBLINGS; i++)
        pthread_join(siblings[i], NULL);
    printf("CALLS %d\n", count);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_kick};
    truth_thread_begin();
    if (argc < 3)
        return 2;
    rounds = atoi(argv[2]);
    sigaction(SIGUSR1, &action, NULL);
    all(argc > 3 ? argv[3] : NULL, strcmp(argv[1], "kicked") == 0);
    EXPECT(before);
    EXPECT(sibling);
    truth_print_total();
    return 0;
}
