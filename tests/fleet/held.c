// SPDX-License-Identifier: MIT
// Coroutines without requests, one of which may not give the thread back.
//   held cpu SECONDS      after a half second one computes, in keep_the_thread(), and never stops
//   held blocked SECONDS  the same, but it sleeps there, in read()
//   held twice SECONDS    one computes for 2.5 s, gives the thread back for half a second, and does so once more
//   held naps SECONDS     the same, but it sleeps
//   held root SECONDS     all wait; the loop is on the thread's own stack, in epoll_wait()
//   held loop SECONDS     all wait; the loop is a coroutine, in epoll_wait()
//   held poll SECONDS     all wait; the loop is a coroutine, in poll()
//   held alone SECONDS    a single coroutine, which computes
//   held threads SECONDS  threads without coroutines: one computes, one sleeps
#include "../context.h"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 6, STACK_BYTES = 65536, SHORT_NS = 2000000 };

typedef struct task {
    ucontext_t context;
    uint64_t wakes_ns;
} task_t;

static ucontext_t own, *scheduler = &own, loop_context;
static task_t tasks[WIDTH], *current;
static int width = WIDTH, epoll_fd, pipe_fds[2];
static uint64_t start_ns, end_ns;
static const char *mode;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int is_mode(const char *name)
{
    return strcmp(mode, name) == 0;
}

__attribute__((noinline)) static void wait_ns(uint64_t ns)
{
    task_t *task = current;
    task->wakes_ns = now_ns() + ns;
    swapcontext(&task->context, scheduler);
    current = task;
}

__attribute__((noinline)) static void keep_the_thread(uint64_t until_ns)
{
    char byte;
    if (is_mode("blocked") && read(pipe_fds[0], &byte, 1) == 1)
        return;
    while (now_ns() < until_ns)
        if (is_mode("naps"))
            usleep(100000);
}

static void run_task(void)
{
    int is_first = current == &tasks[0];
    while (now_ns() < start_ns + 500000000u)
        wait_ns(SHORT_NS);
    if (is_first && (is_mode("cpu") || is_mode("blocked") || is_mode("alone")))
        keep_the_thread(end_ns);
    for (int i = 0; i < 2 && is_first && (is_mode("twice") || is_mode("naps")); i++) {
        keep_the_thread(now_ns() + 2500000000u);
        wait_ns(500000000u);
    }
    for (;;)
        wait_ns(UINT64_C(3600000000000));
}

static void idle(int ms)
{
    struct epoll_event event;
    struct pollfd poller = {.fd = pipe_fds[0], .events = POLLIN};
    if (is_mode("poll"))
        poll(&poller, 1, ms);
    else
        epoll_wait(epoll_fd, &event, 1, ms);
}

static void run_loop(void)
{
    while (now_ns() < end_ns) {
        uint64_t next_ns = end_ns;
        for (int i = 0; i < width; i++) {
            if (tasks[i].wakes_ns <= now_ns()) {
                current = &tasks[i];
                swapcontext(scheduler, &tasks[i].context);
            }
            next_ns = tasks[i].wakes_ns < next_ns ? tasks[i].wakes_ns : next_ns;
        }
        uint64_t now = now_ns();
        idle(next_ns > now ? (int)((next_ns - now) / 1000000) + 1 : 0);
    }
}

static void make(ucontext_t *context, void (*entry)(void))
{
    context_on(context, malloc(STACK_BYTES), STACK_BYTES, &own);
    makecontext(context, entry, 0);
}

static void *compute(void *argument)
{
    while (now_ns() < end_ns)
        ;
    return argument;
}

static void *sleep_there(void *argument)
{
    sleep((unsigned)((end_ns - start_ns) / 1000000000));
    return argument;
}

static int run_threads(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, compute, NULL);
    pthread_create(&threads[1], NULL, sleep_there, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "";
    start_ns = now_ns();
    end_ns = start_ns + (uint64_t)(argc > 2 ? atof(argv[2]) * 1e9 : 0);
    if (is_mode("threads"))
        return run_threads();
    width = is_mode("alone") ? 1 : WIDTH;
    epoll_fd = epoll_create1(0);
    if (epoll_fd < 0 || pipe(pipe_fds) < 0)
        return 1;
    for (int i = 0; i < width; i++)
        make(&tasks[i].context, run_task);
    if (is_mode("loop") || is_mode("poll")) {
        make(&loop_context, run_loop);
        scheduler = &loop_context;
        swapcontext(&own, &loop_context);
        return 0;
    }
    run_loop();
    return 0;
}
