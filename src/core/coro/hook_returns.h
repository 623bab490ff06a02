// SPDX-License-Identifier: MIT
// The stubs that stand in for runtimes' functions (runtime-hooks/interpose): where each goes on.
//
// Model: a stub jumps to what its `next` says. While profiles run, `next` is the hooked part, which calls the hook and
// goes on to the original; else the original itself, or its look-up. So a stub at rest costs one jump. `original` is
// written once, by the first caller that finds out (gp_interpose_resolve()); `next` by the sampler, and until profiles
// run first by that caller.
//
// Threads: any may be in a stub meanwhile; it goes on as it began.
#pragma once

#include <stdbool.h>

typedef struct gp_stub {
    void **next, **original;
    void *hooked;
} gp_stub_t;

// Have all stubs call their hooks, or none. Caller holds the sampler's lock.
void gp_hook_returns_hook(bool hooked);

// The original of the stub with this slot for it is known, for every caller.
void gp_hook_returns_found(void **original, void *function);
