// SPDX-License-Identifier: MIT
// Names of threading.Thread, for the threads here, too. The program's threads are called by the kernel as they are.
//
// Model: a new thread gets its id (Thread._set_native_id), a renamed one its name. Both are found replaced once
// `_thread` starts a thread with `threading` imported, whether or not the package greenprof is. Green threads, which
// threading knows after a monkey patch, are no threads; the main one, not started by threading ("Dummy-1"), keeps the
// kernel's name.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "coro/coro_name.h"
#include "interpreter/api.h"

// Before Python starts: the wrapper is put in place when the module `_thread` is made.
void gp_thread_names_prepare(void);

// In a running Python, the interpreter lock held: threads that run already are named. Idempotent.
void gp_thread_names_watch(void);

// Copy what a Thread object is called. Returns false: it has no name that says anything. Caller holds the lock.
bool gp_thread_names_read(gp_py_t *object, char name[GP_CORO_NAME_SIZE]);

// See gp_language_t.thread_name.
bool gp_thread_names_waiting(pid_t tid, char name[GP_CORO_NAME_SIZE]);
