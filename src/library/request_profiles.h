// SPDX-License-Identifier: MIT
// A profile of each request that goes to consumers, for those with the option profile=.
//
// Model: a request that begins gets one of a fixed number of places, with a running profile; without a free place it
// gets none, and is counted. Where it ends the profile is cut on the spot; a thread of greenprof's own writes it, and
// rests nine times as long as that took of the CPU. So the program's threads never wait for a file, nor is there ever
// more in memory than the places hold.
#pragma once

#include <stdint.h>

// The first consumer with that option is opened, the last is closed. Returns 0 or a negative errno value.
int gp_request_profiles_start(void);
void gp_request_profiles_stop(void);

// Wait until those of all requests that are over were dealt with; the thread does not rest meanwhile.
// deadline_ns: CLOCK_MONOTONIC. Returns 0 or -ETIMEDOUT. Signals: safe.
int gp_request_profiles_wait(uint64_t deadline_ns);

// The process ends and is to wait: the thread goes behind the program's no more. Signals: safe.
void gp_request_profiles_hasten(void);

// Its thread looks whether it may stay. Signals: safe.
void gp_request_profiles_wake(void);

// In a forked child.
void gp_request_profiles_after_fork(void);

// How many were written; how many requests have none: there was no place, or it could not be written.
void gp_request_profiles_count(uint64_t *written, uint64_t *lost);
