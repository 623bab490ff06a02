// SPDX-License-Identifier: MIT
// Waits of coroutines for locks: asyncio's, eventlet's and gevent's, and what is built of them (threading and
// oslo.concurrency under monkey patches).
//
// Model: taking and giving such a lock, and making one, comes here first, by the methods of its class; owners and gives
// are noted in the table of threads' locks (interpreter/lock_table.h), with a coroutine's number for a thread's. A
// coroutine that may have to wait says so to the core (signal/lock_park.h), which asks for the words of the wait as it
// ends. A coroutine of asyncio asks for its loop where it has to wait, and nowhere else, and has the lock when it goes
// on. A wait ended by another than the owner is no lock's, as with threads, but for semaphores, and for asyncio's
// locks, which may be taken by a task of wait_for().
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include <stdbool.h>

// Follow the locks of modules that are there by now, if profiles run. Cost: four look-ups.
void gp_green_locks_look(void);

// Once found, follow gevent's or leave them as they were; the others stay, and do nothing. See gp_language_t.follow.
void gp_green_locks_follow(bool is_attached);
