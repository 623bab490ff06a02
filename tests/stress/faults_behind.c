// SPDX-License-Identifier: MIT
// Loaded behind libgreenprof-core, which asks the loader for the pthread_create() behind its own.
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

#include "faults.h"

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    static __typeof__(pthread_create) *_Atomic next;
    if (next == NULL)
        next = (__typeof__(pthread_create) *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    if (faults_fails_thread(__builtin_return_address(0)))
        return EAGAIN;
    return next(thread, attributes, run, argument);
}
