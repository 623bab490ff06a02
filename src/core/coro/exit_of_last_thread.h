// SPDX-License-Identifier: MIT
// A process ends when its last thread does (pthread_exit(3)): greenprof's own threads do not keep it alive.
//
// Model: the C library counts threads, ours among them. So a thread that ends looks whether it is the last one of the
// program's; then it calls exit(0), as the C library would.
#pragma once

#include <stdbool.h>

// A thread that tells of its end lives on now; it is about to end. The thread itself.
void gp_exit_of_last_thread_begins(void);
void gp_exit_of_last_thread_ends(void);

// Is the calling thread, which has just told of its end, the last of the program's, while some of greenprof's are left?
// Cost: a load, but where no other thread is known to live: then the kernel is asked, for up to 0.1 s where those that
// have told of their ends are still there.
bool gp_exit_of_last_thread_is_this(void);

// In a forked child.
//   is_known: the calling thread will tell of its end.
void gp_exit_of_last_thread_after_fork(bool is_known);
