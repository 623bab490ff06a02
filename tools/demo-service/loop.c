// SPDX-License-Identifier: MIT
#include "loop.h"

#include <greenprof/coro.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    STACK_BYTES = 256 * 1024, // SQLite wants some 50 KiB; pages that are never touched cost nothing
    EVENTS_PER_POLL = 64,
    SLICE_NS = 5000000,
};

struct coroutine {
    ucontext_t context;
    coroutine_fn *fn;
    void *arg;
    bool is_over;
    prof_coro_t *record; // greenprof's; NULL before it starts
    coroutine_t *next;   // in the queue of ready coroutines, or among the idle stacks
};

static _Thread_local struct {
    ucontext_t home; // the thread's own stack, while a coroutine runs
    coroutine_t *running, *idle, *ready_first, *ready_last;
    int epoll_fd;
    int64_t slice_end_ns;
} self;

static int64_t loop_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void loop_make_ready(coroutine_t *co)
{
    if (co->record != NULL)
        prof_coro_ready(co->record);
    co->next = NULL;
    if (self.ready_first == NULL)
        self.ready_first = co;
    else
        self.ready_last->next = co;
    self.ready_last = co;
}

static void loop_suspend(void)
{
    swapcontext(&self.running->context, &self.home);
}

// Each mapping holds, from low to high: guard page, stack, the coroutine's record.
static coroutine_t *loop_map_stack(void)
{
    char *low =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (low == MAP_FAILED || mprotect(low, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) != 0) {
        perror("demo-service: a coroutine's stack");
        exit(1);
    }
    return (coroutine_t *)(void *)(low + STACK_BYTES) - 1;
}

static void loop_run_coroutine(void)
{
    coroutine_t *co = self.running;
    co->record = prof_coro_current();
    co->fn(co->arg);
    co->is_over = true;
    setcontext(&self.home);
}

// Apart from loop_spawn(), so that no variable lives across getcontext(), which may return twice.
__attribute__((noinline)) static void loop_make_context(coroutine_t *co)
{
    getcontext(&co->context);
    char *low = (char *)(co + 1) - STACK_BYTES + sysconf(_SC_PAGESIZE);
    co->context.uc_stack.ss_sp = low;
    co->context.uc_stack.ss_size = (size_t)((char *)co - low);
    makecontext(&co->context, loop_run_coroutine, 0);
}

void loop_spawn(coroutine_fn *fn, void *arg)
{
    coroutine_t *co = self.idle;
    if (co == NULL)
        co = loop_map_stack();
    else
        self.idle = co->next;
    *co = (coroutine_t){.fn = fn, .arg = arg};
    loop_make_context(co);
    loop_make_ready(co);
}

// Run the coroutines that are ready now; coroutines made ready meanwhile wait for the next turn, after epoll.
static void loop_run_ready(void)
{
    coroutine_t *co = self.ready_first;
    self.ready_first = NULL;
    while (co != NULL) {
        coroutine_t *next = co->next;
        self.slice_end_ns = loop_now_ns() + SLICE_NS;
        self.running = co;
        swapcontext(&self.home, &co->context);
        if (co->is_over) {
            co->next = self.idle;
            self.idle = co;
        }
        co = next;
    }
}

int loop_run(coroutine_fn *fn, void *arg, int stop_fd)
{
    struct epoll_event events[EVENTS_PER_POLL], stop = {.events = EPOLLIN};
    bool is_stopped = false;
    self.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (self.epoll_fd < 0 || epoll_ctl(self.epoll_fd, EPOLL_CTL_ADD, stop_fd, &stop) != 0)
        return -1;
    loop_spawn(fn, arg);
    while (!is_stopped) {
        loop_run_ready();
        int count = epoll_wait(self.epoll_fd, events, EVENTS_PER_POLL, self.ready_first != NULL ? 0 : -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.ptr == NULL)
                is_stopped = true;
            else
                loop_make_ready(events[i].data.ptr);
    }
    close(self.epoll_fd);
    return 0;
}

void loop_yield_if_due(void)
{
    if (loop_now_ns() < self.slice_end_ns)
        return;
    loop_make_ready(self.running);
    loop_suspend();
}

// A descriptor is armed for one event and one coroutine at a time.
void loop_wait_fd(int fd, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLONESHOT, .data.ptr = self.running};
    if (epoll_ctl(self.epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0)
        epoll_ctl(self.epoll_fd, EPOLL_CTL_ADD, fd, &event);
    loop_suspend();
}

void loop_sleep(long ms)
{
    struct itimerspec when = {.it_value = {ms / 1000, ms % 1000 * 1000000 + 1}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return;
    if (timerfd_settime(fd, 0, &when, NULL) == 0)
        loop_wait_fd(fd, EPOLLIN);
    close(fd);
}

static void join_run_child(void *arg)
{
    join_child_t *child = arg;
    join_t *join = child->join;
    child->fn(child->arg);
    if (--join->pending == 0 && join->waiter != NULL)
        loop_make_ready(join->waiter);
}

void join_spawn(join_t *join, join_child_t *child, coroutine_fn *fn, void *arg)
{
    *child = (join_child_t){.join = join, .fn = fn, .arg = arg};
    join->pending++;
    loop_spawn(join_run_child, child);
}

void join_wait(join_t *join)
{
    if (join->pending == 0)
        return;
    join->waiter = self.running;
    loop_suspend();
}
