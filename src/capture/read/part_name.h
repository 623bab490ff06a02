// SPDX-License-Identifier: MIT
// Names of the parts of a recording (`greenprof run --rotate`): "api-0007.greenprof" is one of "api.greenprof".
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GP_CAPTURE_SUFFIX ".greenprof"

// The length of a name, or path, without the suffix and the number.
size_t gp_part_stem_len(const char *name);

// Are two names, or paths, of one recording?
bool gp_part_is_beside(const char *name, const char *other);
