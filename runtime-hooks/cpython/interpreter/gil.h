// SPDX-License-Identifier: MIT
// Waits for CPython's global interpreter lock: what the interpreter calls to wait for it comes here first.
//
// Model: take_gil() waits on a condition variable, 5 ms at a time, and drop_gil() on another one until the thread that
// has asked gets it. Both lie in _PyRuntime, where nothing else is waited for, in the same order in each version: so a
// call from the interpreter's own code with such an address is a wait for the lock. The thread that has the lock
// meanwhile is beside it. Interpreters with a lock of their own (3.12 on) have theirs elsewhere: these waits stay
// sleeps. Source: Python/ceval_gil.c (.h in 3.11), Include/internal/pycore_gil.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Once, where the walker is registered. Idempotent.
//   runtime: &_PyRuntime
void gp_gil_watch(const void *runtime);

// See gp_language_t.
void gp_gil_follow(bool is_attached);
