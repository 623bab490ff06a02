// SPDX-License-Identifier: MIT
// N waiting coroutines, of known names, stacks, states and traces; then what argv[2] asks for:
//   dump FILE     prof_coro_dump(FILE), and how long it took, on standard output
//   wait          say "ready", go on until a line comes in
//   crash         SIGSEGV, from a coroutine
//   abort         abort(), from the thread
//   churn FILE    switch, create and destroy for 2 s, while a thread of its own dumps over and over
//   asleep FILE   dump while three threads of its own are held up: by a coroutine asleep in the kernel, by one that
//                 computes, and by the thread's own sleep
//   hold          say "ready", and compute for good, in a coroutine; where N is 0, for 1 s, then sleep until a line
//                 comes in
//   quit          leave
// Among every four coroutines: parked in wait_for_reply (two of them), ready in wait_for_turn, not started.
#define _GNU_SOURCE
#include "../context.h"
#include <greenprof/coro.h>
#include <greenprof/trace.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 32768 };

typedef struct coro {
    ucontext_t context;
    prof_coro_t *record;
    char *stack;
    int number;
} coro_t;

static __thread ucontext_t loop;
static __thread coro_t *current;
static coro_t *all;
static int count, never[2]; // a pipe that nothing is written to
static _Atomic bool over;
static _Atomic pid_t asleep[2];
static _Atomic bool computes;

static void go(coro_t *coro)
{
    current = coro;
    prof_coro_switch(coro->record);
    swapcontext(&loop, &coro->context);
}

static __attribute__((noinline)) void park(void)
{
    coro_t *self = current;
    prof_coro_switch(NULL);
    swapcontext(&self->context, &loop);
    __asm__ volatile("");
}

__attribute__((noinline)) void wait_for_reply(void)
{
    park();
    __asm__ volatile("");
}

__attribute__((noinline)) void wait_for_turn(void)
{
    park();
    __asm__ volatile("");
}

static void work(void)
{
    coro_t *self = current;
    prof_trace_id_t id = {{0}};
    ((unsigned char *)&id)[15] = (unsigned char)(self->number % 4 + 1);
    prof_trace_set(&id);
    for (;;) {
        if (self->number % 4 == 2)
            wait_for_turn();
        else
            wait_for_reply();
        if (self->number < 0)
            kill(getpid(), SIGSEGV);
    }
}

__attribute__((noinline)) void sleep_in_the_kernel(void)
{
    char byte;
    asleep[current == NULL] = (pid_t)syscall(SYS_gettid);
    while (read(never[0], &byte, 1) > 0)
        ;
}

__attribute__((noinline)) void compute(void)
{
    for (computes = true; !atomic_load(&over);)
        ;
    __asm__ volatile("");
}

static void hold_up(void)
{
    if (current->number == 0)
        sleep_in_the_kernel();
    else
        compute();
    park();
}

static double cpu_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void tire_out(void)
{
    for (double end = cpu_s() + 1; cpu_s() < end;)
        ;
    hold_up();
}

static void make(coro_t *coro, int number, void (*entry)(void))
{
    char name[32];
    coro->number = number;
    if (coro->stack == NULL)
        coro->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snprintf(name, sizeof(name), "request %d", number);
    coro->record = prof_coro_create(coro->stack, STACK_BYTES, name);
    context_on(&coro->context, coro->stack, STACK_BYTES, NULL);
    makecontext(&coro->context, entry, 0);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *dump_over_and_over(void *path)
{
    while (!atomic_load(&over))
        if (prof_coro_dump(path) != 0)
            abort();
    return NULL;
}

static void churn(char *path)
{
    pthread_t thread;
    pthread_create(&thread, NULL, dump_over_and_over, path);
    double end = now() + 2;
    for (unsigned i = 0; now() < end; i++) {
        coro_t *coro = &all[(i * 2654435761u) % (unsigned)count];
        if (i % 4 == 0) {
            prof_coro_destroy(coro->record);
            make(coro, coro->number, work);
        }
        go(coro);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
}

static void *hold_up_a_thread(void *coro)
{
    if (coro != NULL)
        go(coro);
    else
        sleep_in_the_kernel();
    return NULL;
}

// Source: proc_pid_syscall(5): "running", or the number of the call that it sleeps in.
static bool is_in_read(pid_t tid)
{
    char path[64], text[16] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
    FILE *file = tid != 0 ? fopen(path, "r") : NULL;
    bool is_there = file != NULL && fgets(text, sizeof(text), file) != NULL && atoi(text) == SYS_read && text[0] != 'r';
    if (file != NULL)
        fclose(file);
    return is_there;
}

static int dump_asleep(char *path)
{
    pthread_t threads[3];
    coro_t coros[2] = {0};
    if (pipe(never) != 0)
        return 5;
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            make(&coros[i], i, hold_up);
        pthread_create(&threads[i], NULL, hold_up_a_thread, i < 2 ? &coros[i] : NULL);
    }
    while (!is_in_read(asleep[0]) || !is_in_read(asleep[1]) || !computes)
        usleep(1000);
    int error = prof_coro_dump(path);
    over = true;
    close(never[1]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return error != 0 ? 4 : 0;
}

int main(int argc, char **argv)
{
    count = argc > 1 ? atoi(argv[1]) : 10000;
    const char *what = argc > 2 ? argv[2] : "quit";
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    options.frequency_hz = 1; // a signal within a switch would hide where it was made
    if (getenv("UNSAMPLED") == NULL && prof_start(&options) == NULL)
        return 3;
    all = calloc((size_t)count, sizeof(*all));
    for (int i = 0; i < count; i++) {
        make(&all[i], i, work);
        if (i % 4 != 3)
            go(&all[i]);
        if (i % 4 == 0) // told once, so that its later waits count as parked
            prof_coro_ready(all[i].record), go(&all[i]);
        if (i % 4 == 2)
            prof_coro_ready(all[i].record);
    }
    usleep(200000);
    if (strcmp(what, "dump") == 0) {
        double least = 1e9;
        for (int i = 0; i < 5; i++) {
            double start = now();
            int error = prof_coro_dump(argv[3]);
            double took = now() - start;
            if (error != 0)
                return fprintf(stderr, "%s\n", strerror(-error)), 4;
            least = took < least ? took : least;
        }
        printf("%.3f\n", least * 1e3);
    } else if (strcmp(what, "wait") == 0) {
        char line[8];
        puts("ready");
        fflush(stdout);
        if (fgets(line, sizeof(line), stdin) == NULL)
            return 0;
    } else if (strcmp(what, "child") == 0) {
        char line[8];
        puts("ready");
        fflush(stdout);
        if (fgets(line, sizeof(line), stdin) == NULL)
            return 5;
        pid_t child = fork();
        if (child == 0)
            compute();
        printf("%d\n", (int)child);
        fflush(stdout);
        waitpid(child, NULL, 0);
    } else if (strcmp(what, "crash") == 0) {
        all[1].number = -1;
        go(&all[1]);
    } else if (strcmp(what, "abort") == 0) {
        abort();
    } else if (strcmp(what, "asleep") == 0) {
        return dump_asleep(argv[3]);
    } else if (strcmp(what, "hold") == 0) {
        coro_t holder = {0};
        make(&holder, count, count > 0 ? hold_up : tire_out);
        puts("ready");
        fflush(stdout);
        go(&holder);
    } else if (strcmp(what, "churn") == 0) {
        churn(argv[3]);
    }
    return 0;
}
