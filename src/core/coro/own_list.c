// SPDX-License-Identifier: MIT
#include "coro/own_list.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic pid_t own[GP_OWN_LIST_MAX];
static _Atomic int beginning; // threads being created, with their ids not there yet

pid_t gp_own_list_id(int i)
{
    return atomic_load_explicit(&own[i], memory_order_acquire);
}

bool gp_thread_is_own(pid_t tid)
{
    for (int i = 0; i < GP_OWN_LIST_MAX; i++) {
        pid_t id = atomic_load_explicit(&own[i], memory_order_acquire);
        if (id == tid || id == -tid)
            return true;
    }
    return false;
}

bool gp_thread_may_be_own(pid_t tid)
{
    // In this order: a thread no longer beginning has its id there.
    return atomic_load_explicit(&beginning, memory_order_acquire) > 0 || gp_thread_is_own(tid);
}

void gp_thread_helper_let_go(void)
{
    int saved = errno;
    for (int i = 0; i < GP_OWN_LIST_MAX; i++) {
        pid_t id = atomic_load_explicit(&own[i], memory_order_acquire);
        if (id < 0 && syscall(SYS_tgkill, getpid(), -id, 0) != 0)
            atomic_compare_exchange_strong_explicit(&own[i], &id, 0, memory_order_relaxed, memory_order_relaxed);
    }
    errno = saved;
}

int gp_thread_helper_count(void)
{
    gp_thread_helper_let_go();
    // First: a thread that puts its id there meanwhile is counted twice rather than not at all.
    int count = atomic_load_explicit(&beginning, memory_order_acquire);
    for (int i = 0; i < GP_OWN_LIST_MAX; i++)
        count += atomic_load_explicit(&own[i], memory_order_acquire) != 0;
    return count;
}

void gp_own_list_change(pid_t from, pid_t to)
{
    for (int i = 0; i < GP_OWN_LIST_MAX; i++) {
        pid_t expected = from;
        if (atomic_compare_exchange_strong_explicit(&own[i], &expected, to, memory_order_acq_rel, memory_order_relaxed))
            return;
    }
}

void gp_own_list_begins(int more)
{
    // Release: partner of the acquire in gp_thread_helper_count(), which finds the id then.
    atomic_fetch_add_explicit(&beginning, more, memory_order_release);
}

void gp_own_list_forget(void)
{
    for (int i = 0; i < GP_OWN_LIST_MAX; i++)
        atomic_store_explicit(&own[i], 0, memory_order_relaxed);
    atomic_store_explicit(&beginning, 0, memory_order_relaxed);
}
