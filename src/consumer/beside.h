// SPDX-License-Identifier: MIT
// Libraries of greenprof's own that libgreenprof loads when they are asked for.
#pragma once

// Load a library for good, such as "libgreenprof-ship.so.0", from beside the library of this code; or, where this code
// is in the program itself, from where the loader finds it. Returns NULL where it, or one it needs, is missing.
// Threads: any. Signals: not safe.
void *gp_beside_load(const char *name);
