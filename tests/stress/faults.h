// SPDX-License-Identifier: MIT
// The common part of the two libraries of fault injection.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))

// Is this call of pthread_create() to fail?
EXPORT bool faults_fails_thread(const void *caller);
