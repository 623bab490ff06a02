// SPDX-License-Identifier: MIT
#include "collect/drain_lock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "coro/lock.h"
#include "coro/process_id.h"

pthread_mutex_t gp_drain_lock = PTHREAD_MUTEX_INITIALIZER;

enum { PASS_NS = 20000, PASSES = 100 };

static _Atomic unsigned waiting; // threads that wait for the lock

void gp_drain_take(void)
{
    gp_process_let_forks_by();
    gp_lock(&gp_drain_lock);
}

void gp_drain_enter(void)
{
    atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
    gp_drain_take();
    atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
}

bool gp_drain_enter_until(const struct timespec *until)
{
    atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
    bool is_taken = gp_lock_until(&gp_drain_lock, until);
    atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
    return is_taken;
}

void gp_drain_leave(void)
{
    gp_unlock(&gp_drain_lock);
}

// The mutex itself would mostly be taken again before one that waits has woken up.
void gp_drain_pass(void)
{
    struct timespec pause = {.tv_nsec = PASS_NS};
    gp_unlock(&gp_drain_lock);
    for (int i = 0; i < PASSES && atomic_load_explicit(&waiting, memory_order_relaxed) > 0; i++)
        syscall(SYS_nanosleep, &pause, NULL);
    gp_drain_take();
}

void gp_drain_after_fork(void)
{
    atomic_store_explicit(&waiting, 0, memory_order_relaxed);
}
