// SPDX-License-Identifier: MIT
// The threads that the command has beside its first one: where it may use several processors, what is read and written
// is unpacked and packed on them (base/helpers.h).
#pragma once

#include <pthread.h>

// Start a thread without signals: they go to the main one, which works. Returns as pthread_create().
int gp_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

// Allow one for each further processor.
void gp_threads_allow(void);
