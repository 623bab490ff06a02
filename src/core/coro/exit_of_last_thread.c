// SPDX-License-Identifier: MIT
#include "coro/exit_of_last_thread.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "coro/own_list.h"
#include "coro/task.h"

enum { TRIES = 100, TRY_NS = 1000000 };

static _Atomic int known; // threads that will tell of their ends
static _Atomic bool main_has_ended;

static bool exit_of_last_thread_is_main(void)
{
    return syscall(SYS_gettid) == getpid();
}

void gp_exit_of_last_thread_begins(void)
{
    atomic_fetch_add_explicit(&known, 1, memory_order_relaxed);
}

void gp_exit_of_last_thread_ends(void)
{
    if (exit_of_last_thread_is_main())
        atomic_store_explicit(&main_has_ended, true, memory_order_relaxed);
    // Two threads may end at a time: the second sees here that it is the second.
    atomic_fetch_sub_explicit(&known, 1, memory_order_seq_cst);
}

void gp_exit_of_last_thread_after_fork(bool is_known)
{
    atomic_store_explicit(&known, is_known, memory_order_relaxed);
    atomic_store_explicit(&main_has_ended, false, memory_order_relaxed);
}

static void exit_of_last_thread_count_other(pid_t tid, void *others)
{
    char state = gp_task_state(tid);
    if (tid != (pid_t)syscall(SYS_gettid) && state != 0 && state != 'Z' && state != 'X')
        ++*(int *)others;
}

bool gp_exit_of_last_thread_is_this(void)
{
    static const struct timespec pause = {.tv_nsec = TRY_NS};
    if (atomic_load_explicit(&known, memory_order_seq_cst) > 0 || gp_thread_helper_count() == 0 ||
        (!atomic_load_explicit(&main_has_ended, memory_order_relaxed) && gp_task_state(getpid()) != 'Z'))
        return false;
    for (int i = 0; i < TRIES && atomic_load_explicit(&known, memory_order_seq_cst) == 0; i++) {
        int others = 0;
        if (gp_task_each(exit_of_last_thread_count_other, &others) != 0)
            return false;
        if (others == 0)
            return true;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    return false;
}
