// SPDX-License-Identifier: MIT
// Stacks that a thread runs on beside its own, and no coroutines to greenprof: the segments of split stacks (gcc
// -fsplit-stack, gccgo), and the goroutines of Go, seen as threads. Samples on them are the thread's.
//
// A thread with split stacks says so where its C library keeps its own things: the end of the present segment
// (gp_arch_split_stack_end()). Go's heap, with its stacks, is at a place of its own. Source: Go, runtime/malloc.go,
// arenaHints.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arch.h"

// There is a module that Go's linker has made. Set by the collector (collect/modules.c).
extern _Atomic bool gp_more_stack_of_go __attribute__((visibility("hidden")));

// Is `sp` on such a stack? Asked of a stack pointer that is on no known stack. Signals: safe. Cost: 1 ns.
static inline bool gp_more_stack_at(uintptr_t sp)
{
    enum { SLACK = 4096, SEGMENT_MAX = 1 << 30, GO_SHIFT = 32, GO_AT = 0xc0 };
    uintptr_t end = gp_arch_split_stack_end();
    return (end != 0 && sp - (end - SLACK) < SEGMENT_MAX) ||
           (sp >> GO_SHIFT == GO_AT && atomic_load_explicit(&gp_more_stack_of_go, memory_order_relaxed));
}
