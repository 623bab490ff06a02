// SPDX-License-Identifier: MIT
// The interface of libgreenprof-otel to the core, which loads it where GREENPROF_OTEL_CONTEXT asks for it.
//
// A library of its own, as readers outside of the process find the thread-local by its name, which the core, loaded
// into any program, does not take for itself. Needs libc only.
#pragma once

#include "greenprof/prof.h"

#define GP_OTEL_LIBRARY "libgreenprof-otel.so.0"
#define GP_OTEL_POINTER "otel_thread_ctx_v1" // Source: OTEP 4947

// Where the calling thread's pointer to its record is; the same as long as the thread lives.
// Threads: any. Signals: not safe, the first call on a thread may allocate. Cost: ~2 ns.
PROF_API void **prof_otel_pointer(void);
typedef void **prof_otel_pointer_t(void);

// Publish the process context: once a process, and again in a forked child, which does not inherit it.
//   service: what the process is called.
// Returns 0, or a negative errno value. Threads: one. Signals: not safe. Cost: ~30 us.
PROF_API int prof_otel_publish(const char *service);
typedef int prof_otel_publish_t(const char *service);
