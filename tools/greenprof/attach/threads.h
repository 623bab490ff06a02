// SPDX-License-Identifier: MIT
// The command's threads beside its first one: on several processors they unpack input and pack output (base/helpers.h).
#pragma once

#include <pthread.h>

// Start a thread without signals: they go to the main one, which works. Returns as pthread_create().
int gp_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

// Allow one for each further processor.
void gp_threads_allow(void);
