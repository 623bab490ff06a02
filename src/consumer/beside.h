// SPDX-License-Identifier: MIT
// Libraries of greenprof's own that libgreenprof loads when they are asked for.
#pragma once

// Load one, for good: "libgreenprof-ship.so.0". It is beside the library that this is in; or, where this is in the
// program itself, where the loader finds it. Returns NULL where it, or what it needs, is not there.
// Threads: any. Signals: not safe.
void *gp_beside_load(const char *name);
