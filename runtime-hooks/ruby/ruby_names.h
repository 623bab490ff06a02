// SPDX-License-Identifier: MIT
// Names of Ruby's Fibers.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Has the Fiber of `context` ended? A Ruby that is not known says no. Cost: ~1 ns.
bool gp_ruby_is_terminated(const void *context);

// "fiber at FILE:LINE", of the block that a Fiber runs.
//   context: its coroutine_context, which has not ended.
// Returns whether it is known; else `name` is unchanged. Caller holds Ruby's lock. Cost: ~3 us.
bool gp_ruby_name(const void *context, char *name, size_t size);
