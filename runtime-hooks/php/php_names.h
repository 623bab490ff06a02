// SPDX-License-Identifier: MIT
// Names of PHP's Fibers.
#ifndef GP_HOOKS_PHP_NAMES_H
#define GP_HOOKS_PHP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

// What a Fiber will run: "function", "Class::method", or "fiber at FILE:LINE" for a closure.
//   context: its zend_fiber_context, before it has run.
// Returns whether it is known; else `name` is unchanged. Cost: ~3 us.
bool gp_php_name(const void *context, char *name, size_t size);

#endif
