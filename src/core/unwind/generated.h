// SPDX-License-Identifier: MIT
// Code that no module has: just-in-time compilers made it.
//
// There are no rows for such code. Where it keeps frame pointers (node, Java, BEAM, .NET), a walk follows these as long
// as the words beside them lead into executable memory. A signal handler cannot ask which memory this is: the collector
// reads it out of /proc/self/maps when a walk has met unknown code, now and again.
//
// Two tables take turns: gp_generated_look() fills the one that is not current, then makes it current. A handler may
// read stale entries meanwhile: such code is never read, and the frame pointers decide where a walk goes. Producer: one
// thread at a time. Consumers: any thread, handlers included.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Is `pc` in such code, as far as is known? Signals: safe. Cost: ~5 ns where there is none.
bool gp_generated_has(uintptr_t pc);

// A sample's walk met an address that no module has, or gave up. Threads: the collector's.
void gp_generated_met(uintptr_t pc);

// Look at what is mapped, if that is called for and a while has passed. Threads: the collector's. Signals: not safe.
// Cost: ~1 us a mapping; a hundredth of the time at most.
void gp_generated_look(void);

enum { GP_GENERATED_MAX = 1024 }; // ranges; more are left out

typedef struct gp_generated_table {
    uint32_t count;
    struct {
        uintptr_t lo, hi;
    } ranges[GP_GENERATED_MAX]; // ascending
} gp_generated_table_t;

// The current one, or NULL.
extern const gp_generated_table_t *_Atomic gp_generated __attribute__((visibility("hidden")));
