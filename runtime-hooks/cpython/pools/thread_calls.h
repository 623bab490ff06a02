// SPDX-License-Identifier: MIT
// Threads that a request starts: threading.Thread, and with it Timer.
//
// Model: what a new thread calls first is handed over to it as a call to a pool is (pool_calls.h): the thread works for
// the request, as a coroutine that is called as the thread is, until it ends. Threads of pools work for the
// calls that they make, not for the request they were started by.
#pragma once

#include "interpreter/api.h"

// The arguments of _thread.start_new_thread(), with their function handed over. New reference; NULL: as they are.
// Caller holds the interpreter lock.
gp_py_t *gp_thread_calls_hand_over(gp_py_t *args);
