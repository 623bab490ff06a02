// SPDX-License-Identifier: MIT
// Facts about a request of nginx, by the functions that nginx exports for modules: no layout of a version is needed.
// The words for the main request and the parent, which no function tells, are found in the first request, and proved by
// each sub-request.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Is a request that was just made as nginx makes them? If not, that is told, once, and nothing is read of it.
bool gp_nginx_learn(uintptr_t request);

// The address of a sub-request's main request or of its parent; 0 = not known.
uintptr_t gp_nginx_main_of(uintptr_t request);
uintptr_t gp_nginx_parent_of(uintptr_t request);

// Copy a variable of a request ("uri"), cut to `size`. Returns whether it has one.
bool gp_nginx_variable(uintptr_t request, const char *name, char *text, size_t size);
