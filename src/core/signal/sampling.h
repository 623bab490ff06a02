// SPDX-License-Identifier: MIT
// Switches from the collector's side to the sampling signal's handler, and the way back: the wake-up.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Set by src/core/collect/sampler.c before the first timer is armed.
extern _Atomic bool gp_handler_sampling
    __attribute__((visibility("hidden"))); // false: signals still under way are counted and ignored
extern _Atomic unsigned gp_handler_depth;  // frames kept of a stack, 2..GP_UNWIND_DEPTH_DEFAULT

extern _Atomic int gp_handler_native; // not 0: native frames are shown among those of a language runtime

// Where greenprof's own code is: what is sampled there in the program's threads is what its hooks cost. 0 bytes:
// unknown.
extern _Atomic uintptr_t gp_handler_own_code, gp_handler_own_bytes;

// Wake the collector: set by src/core/collect/collector.c; must be safe in a handler.
extern void (*gp_handler_kick)(void);
