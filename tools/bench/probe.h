// SPDX-License-Identifier: MIT
// The time that SIGPROF handlers take, seen from just outside them. Part of the preloaded libbench_probe.so: it wraps
// whatever handler the program's profiler installs.
#pragma once

#include <stdint.h>

#include "durations.h"

typedef struct bench_probe {
    volatile uint64_t signals; // handlers begun
    durations_t inside;        // ns from the handler's first instruction to its last
} bench_probe_t;

// Absent (address NULL) where the library is not preloaded.
extern bench_probe_t bench_probe __attribute__((weak));
