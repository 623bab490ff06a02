// SPDX-License-Identifier: MIT
// Facts about the engine in this process.
#pragma once

#include "php_frames.h"

// Is it of the version with known layouts?
bool gp_php_is_known(void);

// A function's code, or a variable, of the engine's; empty = not known.
gp_php_code_t gp_php_extent(const char *name);
