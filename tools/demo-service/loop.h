// SPDX-License-Identifier: MIT
// Coroutines on glibc's ucontext, and the event loop that runs them: one a thread.
//
// Model: a coroutine belongs to the thread that spawned it. The loop resumes coroutines, and a coroutine suspends
// itself back to the loop, until a descriptor is ready or others have had their turn.
//
// greenprof sees makecontext() and swapcontext() by itself. The moment at which a parked coroutine becomes ready is the
// loop's to tell, with prof_coro_ready(). Where there is no memory for a stack the program ends.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef void coroutine_fn(void *arg);
typedef struct coroutine coroutine_t;

// Run fn(arg) as the first coroutine of the calling thread, until `stop_fd` is readable. Returns 0, or -1 with errno.
int loop_run(coroutine_fn *fn, void *arg, int stop_fd);

// Start a coroutine on the calling thread's loop; it runs when the caller next parks.
void loop_spawn(coroutine_fn *fn, void *arg);

// Let the others run when the calling coroutine has had the thread for 5 ms: for long computations.
void loop_yield_if_due(void);

// Park until a file descriptor is ready. `events`: EPOLLIN, EPOLLOUT.
void loop_wait_fd(int fd, uint32_t events);

// Park for some time.
void loop_sleep(long ms);

// Waiting for children: join_spawn() as often as needed, then join_wait() before the join_t goes out of scope.
typedef struct join {
    size_t pending;
    coroutine_t *waiter;
} join_t;

// A child. Must live until join_wait() has returned.
typedef struct join_child {
    join_t *join;
    coroutine_fn *fn;
    void *arg;
} join_child_t;

void join_spawn(join_t *join, join_child_t *child, coroutine_fn *fn, void *arg);
void join_wait(join_t *join);
