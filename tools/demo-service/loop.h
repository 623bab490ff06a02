// SPDX-License-Identifier: MIT
// The event loop: one a thread, it runs coroutines and parks them on epoll and on time.
//
// Model: coroutines are spawned onto the loop of the calling thread and stay there. A loop runs
// until its last coroutine has ended; loop_stop() makes that happen: idle waits are cancelled at
// once, all others when the drain time is over.
//
// Order of calls: loop_create -> loop_run -> loop_free. All but loop_stop() on the loop's own
// thread; what parks (loop_yield, loop_sleep, loop_wait_fd, join_wait) in a coroutine.
#pragma once

#include "coroutine.h"

#define LOOP_NEVER INT64_MAX

typedef struct loop loop_t;

// What is lost when a wait is cancelled.
typedef enum loop_wait_kind {
    LOOP_WAIT_BUSY = 0, // a request
    LOOP_WAIT_IDLE = 1, // nothing: waiting for a client, or for its next request
} loop_wait_kind_t;

// Returns the loop, or NULL and errno.
loop_t *loop_create(void);

// Run `main_fn(arg)` as the first coroutine, and go on until none is left. Returns 0 or -ENOMEM.
int loop_run(loop_t *loop, coroutine_fn main_fn, void *arg);

// Ask a loop to end. Threads: any.
//   drain_ms: how long requests may still take, ms.
void loop_stop(loop_t *loop, int64_t drain_ms);

void loop_free(loop_t *loop);

// Start a coroutine on the calling thread's loop; it runs when the caller next parks. Returns 0 or
// -ENOMEM.
int loop_spawn(coroutine_fn fn, void *arg);

// Milliseconds of the monotonic clock.
int64_t loop_now_ms(void);

// Whether loop_stop() was called for the calling thread's loop.
bool loop_stopping(void);

// How many coroutines are alive on the calling thread's loop.
size_t loop_alive(void);

// Let the others run when the calling coroutine has had the thread for 5 ms: for long computations.
void loop_yield_if_due(void);

// Park for some time. Returns 0, -ECANCELED or -ENOMEM.
int loop_sleep(int64_t ms);

// Park until a file descriptor is ready.
//   events:      EPOLLIN, EPOLLOUT.
//   deadline_ms: in terms of loop_now_ms(), or LOOP_NEVER.
// Returns 0, -ETIMEDOUT, -ECANCELED, -ENOMEM, or what epoll_ctl(2) failed with.
int loop_wait_fd(int fd, uint32_t events, int64_t deadline_ms, loop_wait_kind_t kind);

// Waiting for children: join_spawn() as often as needed, then join_wait() before the join_t goes out of scope.
typedef struct join {
    size_t pending;
    coroutine_t *waiter;
} join_t;

// One child. Must live until join_wait() has returned.
typedef struct join_child {
    join_t *join;
    coroutine_fn fn;
    void *arg;
} join_child_t;

// Start fn(arg) as a child. Returns 0 or -ENOMEM.
int join_spawn(join_t *join, join_child_t *child, coroutine_fn fn, void *arg);

// Park until all children have ended.
void join_wait(join_t *join);
