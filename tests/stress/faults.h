// SPDX-License-Identifier: MIT
// What the two libraries of fault injection share.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))

// Is this call of pthread_create() to fail?
EXPORT bool faults_fails_thread(const void *caller);
