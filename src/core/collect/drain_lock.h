// SPDX-License-Identifier: MIT
// The drain lock: guards the rings' readers, the sinks, and all that the collector works on.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

extern pthread_mutex_t gp_drain_lock;

// Take the drain lock, on any thread but the collector's, and give it back. Cost: at most the time of a piece
// (gp_collector_between_pieces() in collector.h) or of emptying the rings.
void gp_drain_enter(void);

// The same in a fork handler; `until` on CLOCK_MONOTONIC. Returns false where it was not to be had until then.
bool gp_drain_enter_until(const struct timespec *until);
void gp_drain_leave(void);

// Take it on the collector's own thread, which lets a fork by.
void gp_drain_take(void);

// Let a thread that waits for the drain lock have it, and take it again. Caller has it.
void gp_drain_pass(void);

// In a forked child: nothing waits.
void gp_drain_after_fork(void);
