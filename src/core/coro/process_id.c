// SPDX-License-Identifier: MIT
#include "coro/process_id.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/futex.h"
#include "signal/ticks.h"

enum { PATIENCE_NS = 100000000 };

static pid_t owner;            // 0 before the library is set up
static _Atomic uint32_t forks; // threads that run fork handlers
static _Atomic uint64_t last_fork_ns;
static __thread bool is_forking __attribute__((tls_model("initial-exec")));

void gp_process_claim(void)
{
    owner = getpid();
    atomic_store_explicit(&forks, is_forking, memory_order_relaxed); // others' forks are the parent's
}

static _Atomic bool is_left;
static __thread bool is_thread_left __attribute__((tls_model("initial-exec")));

void gp_process_leave(void)
{
    atomic_store_explicit(&is_left, true, memory_order_release);
}

void gp_process_leave_thread(void)
{
    is_thread_left = true;
}

bool gp_process_is_left(void)
{
    return is_thread_left || atomic_load_explicit(&is_left, memory_order_acquire);
}

bool gp_process_is_mine(void)
{
    return !gp_process_is_left() && getpid() == owner;
}

void gp_process_fork_begins(void)
{
    atomic_store_explicit(&last_fork_ns, gp_clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
    if (!is_forking)
        atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
    is_forking = true;
}

void gp_process_fork_ends(void)
{
    if (is_forking) {
        atomic_fetch_sub_explicit(&forks, 1, memory_order_relaxed);
        gp_futex_wake_all(&forks);
    }
    is_forking = false;
}

void gp_process_let_forks_by(void)
{
    uint32_t now = atomic_load_explicit(&forks, memory_order_relaxed);
    if (now == 0 || is_forking)
        return;
    int saved_errno = errno;
    uint64_t end = atomic_load_explicit(&last_fork_ns, memory_order_relaxed) + PATIENCE_NS;
    for (uint64_t time; now != 0 && (time = gp_clock_ns(CLOCK_MONOTONIC)) < end;
         now = atomic_load_explicit(&forks, memory_order_relaxed))
        gp_futex_wait(&forks, now, end - time);
    errno = saved_errno;
}

bool gp_process_is_open(void)
{
    return !is_forking && gp_process_is_mine();
}
