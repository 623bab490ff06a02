// SPDX-License-Identifier: MIT
// Sites at which greenlets, tasks and calls for other threads are made: the Python frames of their creators, for
// `--stitch`.
#pragma once

#include <stdint.h>

// The number of the site at which the calling thread is, see src/core/coro/spawn.h; 0 = not wanted. Caller
// holds the interpreter lock. Cost: a walk of the frames, 128 at most, and a look-up.
uint32_t gp_cpython_spawn_site(void);
