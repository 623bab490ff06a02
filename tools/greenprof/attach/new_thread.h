// SPDX-License-Identifier: MIT
// A new thread in another process, created by a stopped thread there.
//
// Model: the stopped thread calls pthread_create(). The new one starts in sched_yield(): there it is stopped, and may
// be made to call something else. Let go, it ends, as it does should this process be killed before.
#pragma once

#include "target_modules.h"
#include "thread_call.h"

// Have it created. Returns its id, for gp_new_thread_take(), or a negative errno value: -ENOEXEC where the C library
// has no functions for it that are known, -ETIMEDOUT where they wait for a lock.
//   memory: of the process, for what the functions are given: GP_NEW_THREAD_BYTES.
enum { GP_NEW_THREAD_BYTES = 128 };
pid_t gp_new_thread_create(gp_thread_call_t *creator, const gp_target_modules_t *modules, uint64_t memory);

// Let it come to where it may be made to call something, and note that: `call` is the new one's from here on.
// Returns 0 or a negative errno value.
int gp_new_thread_take(gp_thread_call_t *call, pid_t tid);
