// SPDX-License-Identifier: MIT
// Names of PHP's Fibers.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The function that a Fiber will run: "function", "Class::method", or "fiber at FILE:LINE" for a closure.
//   context: its zend_fiber_context, before it has run.
// Returns whether it is known; else `name` is unchanged. Cost: ~3 us.
bool gp_php_name(const void *context, char *name, size_t size);
