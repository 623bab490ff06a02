// SPDX-License-Identifier: MIT
#include "loop.h"

#include "timers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS_PER_POLL = 64,
    SLICE_MS = 5,
};

struct loop {
    int epoll_fd;
    int stop_fd; // eventfd: loop_stop() was called
    coroutine_t *ready_first;
    coroutine_t *ready_last;
    coroutine_t *alive;
    size_t alive_count;
    timers_t timers;
    int64_t slice_end_ms;
    bool stopping;
    int64_t drain_end_ms;
    _Atomic int64_t drain_ms; // written before stop_fd, read after it
};

static _Thread_local loop_t *current;

int64_t loop_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool loop_stopping(void)
{
    return current->stopping;
}

size_t loop_alive(void)
{
    return current->alive_count;
}

static void make_ready(loop_t *loop, coroutine_t *co)
{
    if (co->record != NULL)
        prof_coro_ready(co->record);
    co->next = NULL;
    if (loop->ready_first == NULL)
        loop->ready_first = co;
    else
        loop->ready_last->next = co;
    loop->ready_last = co;
}

int loop_spawn(coroutine_fn fn, void *arg)
{
    loop_t *loop = current;
    coroutine_t *co = coroutine_create(fn, arg);
    if (co == NULL)
        return -ENOMEM;
    co->next_alive = loop->alive;
    if (loop->alive != NULL)
        loop->alive->prev_alive = co;
    loop->alive = co;
    loop->alive_count++;
    make_ready(loop, co);
    return 0;
}

static void bury(loop_t *loop, coroutine_t *co)
{
    if (co->next_alive != NULL)
        co->next_alive->prev_alive = co->prev_alive;
    if (co->prev_alive != NULL)
        co->prev_alive->next_alive = co->next_alive;
    else
        loop->alive = co->next_alive;
    loop->alive_count--;
    coroutine_recycle(co);
}

// Run the coroutines that are ready now; those that become ready meanwhile wait for the next turn, after epoll.
static void run_ready(loop_t *loop)
{
    coroutine_t *co = loop->ready_first;
    loop->ready_first = NULL;
    while (co != NULL) {
        coroutine_t *next = co->next;
        loop->slice_end_ms = loop_now_ms() + SLICE_MS;
        coroutine_resume(co);
        if (co->finished)
            bury(loop, co);
        co = next;
    }
}

static void end_wait(loop_t *loop, coroutine_t *co, int result)
{
    if (!co->wait.waiting)
        return;
    co->wait.waiting = false;
    co->wait.result = result;
    if (co->wait.deadline_ms != LOOP_NEVER)
        timers_remove(&loop->timers, co);
    if (result != 0 && co->wait.fd >= 0)
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, co->wait.fd, NULL);
    make_ready(loop, co);
}

static bool cancelled(const loop_t *loop, bool idle)
{
    return loop->stopping && (idle || loop_now_ms() >= loop->drain_end_ms);
}

static void cancel_waits(loop_t *loop)
{
    for (coroutine_t *co = loop->alive; co != NULL; co = co->next_alive)
        if (cancelled(loop, co->wait.idle))
            end_wait(loop, co, -ECANCELED);
}

static void begin_stop(loop_t *loop)
{
    uint64_t ignored;
    if (read(loop->stop_fd, &ignored, sizeof ignored) < 0)
        return;
    loop->stopping = true;
    // Synchronizes with loop_stop().
    loop->drain_end_ms = loop_now_ms() + atomic_load_explicit(&loop->drain_ms, memory_order_acquire);
    cancel_waits(loop);
}

static int poll_timeout_ms(const loop_t *loop)
{
    if (loop->ready_first != NULL)
        return 0;
    const coroutine_t *first = timers_first(&loop->timers);
    int64_t until = first != NULL ? first->wait.deadline_ms : LOOP_NEVER;
    if (loop->stopping && loop->drain_end_ms < until)
        until = loop->drain_end_ms;
    if (until == LOOP_NEVER)
        return -1;
    int64_t left = until - loop_now_ms();
    return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

// A descriptor is armed for one event and one coroutine at a time, and no coroutine runs between
// epoll_wait() and the end of this function: the pointers that it delivers are alive.
static void poll_events(loop_t *loop)
{
    struct epoll_event events[EVENTS_PER_POLL];
    int count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_POLL, poll_timeout_ms(loop));
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr == NULL)
            begin_stop(loop);
        else
            end_wait(loop, events[i].data.ptr, 0);
}

static void expire_timers(loop_t *loop)
{
    int64_t now = loop_now_ms();
    coroutine_t *co = timers_first(&loop->timers);
    while (co != NULL && co->wait.deadline_ms <= now) {
        end_wait(loop, co, co->wait.fd >= 0 ? -ETIMEDOUT : 0);
        co = timers_first(&loop->timers);
    }
    if (loop->stopping && now >= loop->drain_end_ms)
        cancel_waits(loop);
}

int loop_run(loop_t *loop, coroutine_fn main_fn, void *arg)
{
    current = loop;
    int rc = loop_spawn(main_fn, arg);
    while (loop->alive_count > 0) {
        run_ready(loop);
        if (loop->alive_count == 0)
            break;
        poll_events(loop);
        expire_timers(loop);
    }
    coroutine_pool_free();
    current = NULL;
    return rc;
}

void loop_stop(loop_t *loop, int64_t drain_ms)
{
    // Synchronizes with begin_stop().
    atomic_store_explicit(&loop->drain_ms, drain_ms, memory_order_release);
    eventfd_write(loop->stop_fd, 1);
}

static void yield(void)
{
    make_ready(current, coroutine_self());
    coroutine_suspend();
}

void loop_yield_if_due(void)
{
    if (loop_now_ms() >= current->slice_end_ms)
        yield();
}

static int wait_until(loop_t *loop, int fd, int64_t deadline_ms, bool idle)
{
    coroutine_t *co = coroutine_self();
    co->wait = (coroutine_wait_t){.waiting = true, .idle = idle, .fd = fd, .deadline_ms = deadline_ms};
    if (deadline_ms != LOOP_NEVER && timers_add(&loop->timers, co) != 0) {
        co->wait.waiting = false;
        if (fd >= 0)
            epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return -ENOMEM;
    }
    coroutine_suspend();
    return co->wait.result;
}

int loop_sleep(int64_t ms)
{
    if (cancelled(current, false))
        return -ECANCELED;
    return wait_until(current, -1, loop_now_ms() + ms, false);
}

static int arm(loop_t *loop, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLONESHOT, .data.ptr = coroutine_self()};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0)
        return 0;
    if (errno == ENOENT && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    return -errno;
}

int loop_wait_fd(int fd, uint32_t events, int64_t deadline_ms, loop_wait_kind_t kind)
{
    bool idle = kind == LOOP_WAIT_IDLE;
    if (cancelled(current, idle))
        return -ECANCELED;
    int rc = arm(current, fd, events);
    return rc != 0 ? rc : wait_until(current, fd, deadline_ms, idle);
}

static void run_child(void *arg)
{
    join_child_t *child = arg;
    join_t *join = child->join;
    child->fn(child->arg);
    if (--join->pending == 0 && join->waiter != NULL)
        make_ready(current, join->waiter);
}

int join_spawn(join_t *join, join_child_t *child, coroutine_fn fn, void *arg)
{
    *child = (join_child_t){.join = join, .fn = fn, .arg = arg};
    int rc = loop_spawn(run_child, child);
    if (rc == 0)
        join->pending++;
    return rc;
}

void join_wait(join_t *join)
{
    if (join->pending == 0)
        return;
    join->waiter = coroutine_self();
    coroutine_suspend();
}

loop_t *loop_create(void)
{
    loop_t *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return NULL;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    if (loop->epoll_fd >= 0 && loop->stop_fd >= 0 &&
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->stop_fd, &event) == 0)
        return loop;
    int saved = errno;
    loop_free(loop);
    errno = saved;
    return NULL;
}

void loop_free(loop_t *loop)
{
    if (loop == NULL)
        return;
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    if (loop->stop_fd >= 0)
        close(loop->stop_fd);
    timers_free(&loop->timers);
    free(loop);
}
