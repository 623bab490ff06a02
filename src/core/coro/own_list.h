// SPDX-License-Identifier: MIT
// The list of greenprof's own threads, by their ids: which of the process' threads are not the program's. Threads: any.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { GP_OWN_LIST_MAX = 64 };

// Is `tid` one of greenprof's own threads?
bool gp_thread_is_own(pid_t tid);

// May a thread be one of greenprof's own, or become one as it begins? Signals: safe.
bool gp_thread_may_be_own(pid_t tid);

// The kernel's count of threads, those just beginning or leaving included; one that begins may be counted twice.
int gp_thread_helper_count(void);

// Forget those that are gone: now and then, as their ids come again.
void gp_thread_helper_let_go(void);

// Entry i: an id; 0 = none. Negative: that thread leaves. Such an entry stays until the kernel has let the thread go, a
// little after its last instruction: the kernel counts the thread, and it is not one of the program's.
pid_t gp_own_list_id(int i);

// The entry `from` becomes `to`. Without effect where there is none.
void gp_own_list_change(pid_t from, pid_t to);

// So many more threads are being created, and have not put their ids there yet.
void gp_own_list_begins(int more);

// In a forked child: they are gone.
void gp_own_list_forget(void);
