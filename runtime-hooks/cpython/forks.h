// SPDX-License-Identifier: MIT
// os.fork() and os.forkpty(), which from 3.12 on warn of a fork beside other threads.
//
// Model: the interpreter asks the kernel how many threads there are, in the parent, after the fork. So greenprof's own
// step aside (process/aside.h) for the whole call, where the program has no other thread.
#pragma once

// Before the interpreter has begun; and once it has, by the holder of its lock. Idempotent.
void gp_forks_prepare(void);
void gp_forks_watch(void);
